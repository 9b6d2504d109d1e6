"""Measurements. Each prints its ratios side by side from one run; absolute times of a machine mean nothing."""
