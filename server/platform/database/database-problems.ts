import { postgresFault, sqliteFault } from './database-faults.ts'

/** Why the database cannot be used. */
export interface DatabaseProblem {
  /** One sentence for everybody: it names no host, user or secret. */
  says: string
  /** What an operator does about it. */
  remedy: string
}

/** Matches an error's code and message, `CODE message`, or the message alone where the driver gives no code. */
type Row = readonly [pattern: RegExp, says: string, remedy: string]

const RESTORE = 'Stop the service, keep the files, and restore a backup: affiliate db restore FILE.'
const RUNNING = 'See that the server runs and can be reached, and that DATABASE_URL names it.'

/** The codes of PostgreSQL, SQLite, Node's TLS and the system. The first row that matches applies. */
const ROWS: readonly Row[] = [
  [
    /^CERT_HAS_EXPIRED\b/,
    "The database server's certificate has expired.",
    'Renew it on the server and reload PostgreSQL.',
  ],
  [
    /^CERT_NOT_YET_VALID\b/,
    "The database server's certificate is not valid yet.",
    "Check this machine's clock, then the certificate.",
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID\b/,
    "The database server's certificate is for another host name.",
    'Name the server in DATABASE_URL as its certificate does.',
  ],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_|INVALID_(CA|PURPOSE)\b|CRL_|ERROR_IN_CERT_|PATH_LENGTH_|HOSTNAME_MISMATCH)/,
    "The database server's certificate cannot be verified.",
    'Name the certificate of its authority in DATABASE_URL with sslrootcert=FILE; if it worked before, put the former certificate back.',
  ],
  [
    /^The server does not support SSL/,
    'The database server does not offer TLS, which DATABASE_URL asks for.',
    'Turn TLS on at the server (ssl = on); on a private network only, set sslmode=disable.',
  ],
  [
    /^(ERR_SSL_|ERR_TLS_|ERR_OSSL_|EPROTO\b|There was an error establishing an SSL)/,
    'The TLS connection to the database server fails.',
    'Check sslmode, sslrootcert, sslcert and sslkey in DATABASE_URL, and the log of the server.',
  ],
  [
    /^28000 .*(no encryption|SSL off)/,
    'The database server refuses unencrypted connections.',
    'Turn TLS on: add sslmode=require to DATABASE_URL.',
  ],
  [
    /^28000/,
    'The database server refuses this user, machine or kind of connection.',
    'Correct the user in DATABASE_URL, or pg_hba.conf on the server; if it wants TLS, add sslmode=require.',
  ],
  [
    /^(28P01|SASL|Unknown authentication)/,
    'The database server refuses the user or password.',
    'Correct user and password in DATABASE_URL; percent-encode special characters.',
  ],
  [
    /^3D000/,
    'The database does not exist on the server.',
    'Correct its name in DATABASE_URL, or make it with createdb and run "affiliate db migrate".',
  ],
  [
    /^08P01 .*(startup parameter|"options")/,
    'A pooler answers at this address and refuses read-only connections.',
    'Set DATABASE_DIRECT_URL to the database itself.',
  ],
  [
    /^08P01/,
    'A pooler at this address answers with an error.',
    'See its log: it must know the database and the user, and reach the server.',
  ],
  [
    /^53300/,
    'The database server has no connection left.',
    'Raise max_connections, or lower DATABASE_POOL_SIZE.',
  ],
  [/^57P03/, 'The database server is starting up or shutting down.', 'Wait, and see its log.'],
  [
    /^25006 default_transaction_read_only/,
    'The database refuses writes: default_transaction_read_only is on.',
    'Set it to off for the role, the database or the server.',
  ],
  [/^25006/, 'The database takes reads only, as a standby does.', 'Name the primary in DATABASE_URL.'],
  [
    /^(SQLITE_FULL|ENOSPC|EDQUOT|53100)/,
    'The disk is full.',
    'Free some space, or move the database to a larger disk.',
  ],
  [/^(SQLITE_CORRUPT|SQLITE_NOTADB|XX001|XX002)/, 'The database is damaged.', RESTORE],
  [
    /^(SQLITE_IOERR|58030|EIO|EFBIG)/,
    'The disk cannot be read or written.',
    "See the disk's space and health, and the system's log.",
  ],
  [
    /^SQLITE_READONLY/,
    'The database file cannot be written.',
    'Run as the user of the service, or make the file and its folder writable.',
  ],
  [
    /^(SQLITE_PERM|SQLITE_AUTH|EACCES|EPERM|EROFS)/,
    'Permission is lacking.',
    'Run as the user of the service.',
  ],
  [
    /^SQLITE_CANTOPEN/,
    'The database file cannot be opened.',
    'Your user must be able to read it and its folder.',
  ],
  [
    /^42501/,
    'The database role lacks a privilege.',
    'Run "affiliate db grants ROLE" as the owner of the tables, or name the owner with --database-url.',
  ],
  [/^(ENOTFOUND|EAI_AGAIN)/, "The database server's name cannot be resolved.", RUNNING],
  [/^ENOENT .*open/, 'A file that DATABASE_URL names is missing.', 'Check sslrootcert, sslcert and sslkey.'],
  [
    /^(Query read timeout|57014)/,
    'The database does not finish what it is asked.',
    'See whether it hangs: its disk, its locks, or commits that wait for a standby.',
  ],
  [
    /^(ETIMEDOUT|timeout exceeded|timeout expired$|Connection terminated due to connection timeout)/,
    'The database server does not answer.',
    'See whether it hangs (its disk, memory and log) or a firewall drops what it is sent, and that DATABASE_URL names it.',
  ],
  [
    /^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOENT|Connection terminated)/,
    'The database server cannot be reached.',
    RUNNING,
  ],
  [
    /^(DATABASE_BUSY|SQLITE_BUSY|SQLITE_LOCKED|40001|40P01|55P03|26000|42P05)/,
    'The database is busy.',
    'Try again shortly.',
  ],
]

/** What is wrong, by an error of the database, its driver or the system; `null` for any other error. */
export function databaseProblem(error: unknown): DatabaseProblem | null {
  if (!(error instanceof Error)) return null
  const { code, message } = error as NodeJS.ErrnoException
  const text = [code, message].filter(Boolean).join(' ')
  const row = ROWS.find(([pattern]) => pattern.test(text))
  if (row) return { says: row[1], remedy: row[2] }
  const fault = sqliteFault(error) ?? postgresFault(error)
  return fault?.kind === 'unavailable' ? { says: 'The database cannot be used.', remedy: RUNNING } : null
}
