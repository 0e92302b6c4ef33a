#!/bin/sh
# The command line with the settings, the user and the folders of the service. Install it as /usr/local/bin/affiliate, for root. Files
# are named by absolute paths, and must be readable or writable for the user affiliate.
exec systemd-run --quiet --pty --pipe --wait --collect --service-type=exec \
  --uid=affiliate --gid=affiliate --property=UMask=0077 \
  --property=EnvironmentFile=/etc/affiliate/affiliate.env --setenv=NODE_ENV=production --setenv=DATA_DIR=/var/lib/affiliate \
  --setenv=NODE_COMPILE_CACHE=/var/cache/affiliate --setenv=TERM="${TERM:-dumb}" \
  /opt/affiliate/cli/affiliate "$@"
