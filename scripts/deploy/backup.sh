#!/bin/sh
# Backs up the database that DATABASE_URL names, restores the backup into a scratch database, verifies its books there, and only
# then counts it as a backup. Exit code 0: all of it worked. PostgreSQL needs pg_dump and pg_restore, and a role that may create databases.
#
# BACKUP_DIR      where backups go
# BACKUP_KEEP     how many verified backups are kept (14)
# BACKUP_METRICS  a file NAME.prom in the folder of Prometheus' node exporter, for the alerts (none)
set -eu
umask 077
folder=${BACKUP_DIR:?set it to the folder of the backups}
affiliate=$(dirname -- "$(readlink -f -- "$0")")/../../cli/affiliate
started=$(date +%s)
file=$folder/affiliate-$(date -u +%Y%m%dT%H%M%SZ).backup

# What is left of a drill that failed makes room: its log said why.
rm -f -- "$folder"/affiliate-*.unverified
"$affiliate" db backup "$file.unverified" >/dev/null
"$affiliate" db restore "$file.unverified" --discard
mv -- "$file.unverified" "$file"
ls -1 -- "$folder"/affiliate-*.backup | head -n "-${BACKUP_KEEP:-14}" | while read -r old; do rm -f -- "$old"; done

if [ -n "${BACKUP_METRICS:-}" ]; then
  cat >"$BACKUP_METRICS.tmp" <<END
# HELP affiliate_backup_verified_timestamp_seconds When the newest backup was made whose restore drill succeeded.
# TYPE affiliate_backup_verified_timestamp_seconds gauge
affiliate_backup_verified_timestamp_seconds $started
# HELP affiliate_backup_bytes Size of the newest verified backup.
# TYPE affiliate_backup_bytes gauge
affiliate_backup_bytes $(stat -c %s -- "$file")
END
  chmod 644 "$BACKUP_METRICS.tmp"
  mv -- "$BACKUP_METRICS.tmp" "$BACKUP_METRICS"
fi
echo "Verified $file"
