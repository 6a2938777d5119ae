"""The time machine: traces in, the real planning core over a simulated clock, figures and pictures out."""
