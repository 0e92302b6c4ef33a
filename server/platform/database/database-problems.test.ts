// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { postgresFault } from './database-faults.ts'
import { databaseProblem } from './database-problems.ts'

const errorOf = (code: string, message = '') => Object.assign(new Error(message), code && { code })

const UNREACHABLE: [code: string, message: string, says: RegExp][] = [
  ['CERT_HAS_EXPIRED', 'certificate has expired', /certificate has expired/],
  ['CERT_NOT_YET_VALID', 'certificate is not yet valid', /not valid yet/],
  ['ERR_TLS_CERT_ALTNAME_INVALID', "Hostname/IP does not match certificate's altnames", /another host name/],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate', /cannot be verified/],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate in certificate chain', /cannot be verified/],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify the first certificate', /cannot be verified/],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'unable to get local issuer certificate', /cannot be verified/],
  ['CERT_REVOKED', 'certificate revoked', /cannot be verified/],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'tlsv1 alert protocol version', /TLS connection .* fails/],
  ['EPROTO', 'write EPROTO', /TLS connection .* fails/],
  ['', 'The server does not support SSL connections', /does not offer TLS/],
  ['', 'There was an error establishing an SSL connection', /TLS connection .* fails/],
  ['28000', 'no pg_hba.conf entry for host "10.0.0.1", user "u", no encryption', /refuses unencrypted/],
  ['28000', 'no pg_hba.conf entry for host "10.0.0.1", database "d", SSL off', /refuses unencrypted/],
  ['28000', 'role "u" does not exist', /refuses this user/],
  ['28P01', 'password authentication failed for user "u"', /refuses the user or password/],
  ['', 'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string', /refuses the user or password/],
  ['3D000', 'database "d" does not exist', /does not exist/],
  ['08P01', 'unsupported startup parameter: options', /refuses read-only connections/],
  ['08P01', 'no such database: shop', /pooler at this address answers with an error/],
  ['53300', 'sorry, too many clients already', /no connection left/],
  ['57P03', 'the database system is starting up', /starting up/],
  ['25P03', 'terminating connection due to idle-in-transaction timeout', /cannot be used/],
  ['25006', 'cannot execute INSERT in a read-only transaction', /takes reads only/],
  ['53100', 'could not extend file: No space left on device', /disk is full/],
  ['58030', 'could not read file', /cannot be read or written/],
  ['XX001', 'invalid page in block 0', /damaged/],
  ['ENOTFOUND', 'getaddrinfo ENOTFOUND db', /name cannot be resolved/],
  ['ECONNREFUSED', 'connect ECONNREFUSED 10.0.0.1:5432', /cannot be reached/],
  ['ENOENT', "ENOENT: no such file or directory, open '/etc/ca.crt'", /file .* is missing/],
  ['', 'Query read timeout', /does not finish/],
  ['ETIMEDOUT', 'connect ETIMEDOUT 10.0.0.1:5432', /does not answer/],
  ['', 'timeout exceeded when trying to connect', /does not answer/],
  ['', 'timeout expired', /does not answer/],
  ['', 'Connection terminated due to connection timeout', /does not answer/],
  ['', 'Connection terminated unexpectedly', /cannot be reached/],
]

test('a database that cannot be used is unavailable, and its problem says why without host, user or path', () => {
  for (const [code, message, says] of UNREACHABLE) {
    const error = errorOf(code, message)
    assert.is(postgresFault(error)?.kind, 'unavailable', `${code} ${message}`)
    const problem = databaseProblem(error)
    assert.match(problem?.says ?? '', says, `${code} ${message}`)
    assert.not.match(problem?.says ?? '', /10\.0\.0\.1|"u"|\/etc|ENOTFOUND/)
    assert.ok(problem?.remedy)
  }
  assert.is(databaseProblem(errorOf('28000', 'x no encryption'))?.remedy.includes('sslmode=require'), true)
})

test('SQLite: a full disk, a damaged file, a file that cannot be written', () => {
  const says = (code: string) => databaseProblem(errorOf(code, 'x'))?.says
  assert.is(says('SQLITE_FULL'), 'The disk is full.')
  assert.is(says('SQLITE_CORRUPT'), 'The database is damaged.')
  assert.is(says('SQLITE_NOTADB'), 'The database is damaged.')
  assert.is(says('SQLITE_IOERR_FSYNC'), 'The disk cannot be read or written.')
  assert.is(says('SQLITE_READONLY_DIRECTORY'), 'The database file cannot be written.')
})

test('other errors are no problem of the database', () => {
  const others = [new TypeError('x is not a function'), errorOf('23505', 'duplicate key'), 'text', null]
  for (const error of others) assert.is(databaseProblem(error), null)
})

test.run()
