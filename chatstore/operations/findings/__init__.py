"""Findings: what needs attention, the monitor that looks for it, and notifications."""
