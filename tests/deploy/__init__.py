"""The files that a service is deployed with, and the commands of docs/deploy.md."""
