/** A database error, classified the same for SQLite and PostgreSQL. */
export type DatabaseFault =
  /** A unique constraint failed. `constraint` is `table.column, …` on SQLite and the constraint's name on PostgreSQL. */
  | { kind: 'unique'; constraint: string }
  /** Lost a race against another transaction; the whole transaction can run again. */
  | { kind: 'contention' }
  /** The database cannot be reached or cannot write. Retrying later may help. */
  | { kind: 'unavailable'; detail: string }

/** PostgreSQL: the server takes reads only: a standby, or a primary that was just replaced. */
export const READ_ONLY = '25006'

const BUSY_CODE = 'DATABASE_BUSY'

/** A timeout while waiting for other writers. Counts as `unavailable`, so it is not retried. */
export class DatabaseBusy extends Error {
  /** Wrapping errors copy it. */
  readonly code = BUSY_CODE

  constructor(what: string) {
    super(`the database is busy: ${what}`)
    this.name = 'DatabaseBusy'
  }
}

export function isBusy(error: unknown): boolean {
  return coded(error).code === BUSY_CODE
}

/** Whether the server or a pooler ends the connection with this error, or another connection may not have it. */
export function isOfConnection(error: unknown): boolean {
  return isStatementLost(error) || /^(08|57P0|25P0[34]|25006$)/.test(coded(error).code)
}

/** Whether the server does not know a prepared statement that the driver prepared, or the reverse: a pooler changed connections. */
export function isStatementLost(error: unknown): boolean {
  return ['26000', '42P05'].includes(coded(error).code)
}

/** Whether a connection takes writes, and if not, whether because its server is a standby. */
export const WRITE_ACCESS =
  "select current_setting('transaction_read_only') = 'on' as read_only, pg_is_in_recovery() as standby"

export interface WriteAccess {
  read_only: boolean
  standby: boolean
}

export function readOnlyError({ standby }: WriteAccess): Error {
  const message = standby ? 'the server takes reads only' : 'default_transaction_read_only is on'
  return Object.assign(new Error(message), { code: READ_ONLY })
}

function coded(error: unknown): { code: string; message: string; constraint: string } {
  const { code, message, constraint } = Object(error) as Record<string, unknown>
  const text = (value: unknown) => (typeof value === 'string' ? value : '')
  return { code: text(code), message: text(message), constraint: text(constraint) }
}

const SQLITE_UNAVAILABLE =
  /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|CORRUPT|NOTADB|NOMEM|PERM|AUTH|PROTOCOL|MISUSE)/

/** See https://www.sqlite.org/rescode.html for the codes. */
export function sqliteFault(error: unknown): DatabaseFault | null {
  const { code, message } = coded(error)
  if (code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY') {
    return { kind: 'unique', constraint: message.replace(/^UNIQUE constraint failed: /, '') }
  }
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) return { kind: 'contention' }
  if (SQLITE_UNAVAILABLE.test(code) || code === BUSY_CODE) return { kind: 'unavailable', detail: message }
  return null
}

const NETWORK =
  /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|ENOENT|ECONNABORTED)$/
/** The server's certificate or the handshake: https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const TLS =
  /^(CERT_|CRL_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|ERROR_IN_CERT_|ERR_TLS_|ERR_SSL_|ERR_OSSL_|EPROTO$)/
/** Refused before the server takes a statement, or lost; the driver gives these no code. */
const NOT_CONNECTED =
  /^(SASL: |The server does not support SSL|There was an error establishing an SSL|Unknown authentication)|Connection terminated|timeout exceeded when trying to connect|^timeout expired$|Query read timeout|Client has encountered a connection error/

/** See https://www.postgresql.org/docs/current/errcodes-appendix.html for the codes. */
export function postgresFault(error: unknown): DatabaseFault | null {
  const { code, message, constraint } = coded(error)
  if (code === '23505') return { kind: 'unique', constraint }
  if (/^(40001|40P01|55P03)$/.test(code) || isStatementLost(error)) return { kind: 'contention' }
  const codes = [/^(08|28|3D|53|57P0|25P0[34]|58|XX00|57014$|25006$)/, NETWORK, TLS]
  const isUnavailable = codes.some((pattern) => pattern.test(code)) || NOT_CONNECTED.test(message)
  return isUnavailable ? { kind: 'unavailable', detail: message } : null
}
