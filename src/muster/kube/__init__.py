"""A small fast Kubernetes client: access, requests, watch caches, leader election, events. No gangs here."""
