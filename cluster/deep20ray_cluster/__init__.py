"""The driver: plan, tables, pools, gates, journal, sealing, command line."""
