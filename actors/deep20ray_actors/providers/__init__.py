"""The wire: what a provider is sent, what its replies mean, and the one place that sends."""
