"""Findings: what needs attention, the monitor that detects it, and notifications."""
