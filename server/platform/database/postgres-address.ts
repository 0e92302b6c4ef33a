import { readFileSync } from 'node:fs'
import { didYouMean } from '../nearest-word.ts'

/** `postgres://USER:PASSWORD@`, the hosts, and the rest. As in URLs, the last `@` before the path ends the password. */
const PARTS = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/s

/** What `target_session_attrs` may be: the service writes, so it needs the primary. */
const WRITABLE = ['read-write', 'primary']

/** `no-verify` is the driver's: encrypted, and the certificate is not checked. The others that encrypt check it fully. */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full', 'no-verify']

const FILES = ['sslrootcert', 'sslcert', 'sslkey']

/** The options after `?` that have a meaning here; `channel_binding` is what some services add. */
const OPTIONS = [
  ...['host', 'port', 'user', 'password', 'target_session_attrs', 'application_name', 'options'],
  ...['sslmode', ...FILES, 'sslnegotiation', 'channel_binding'],
]

const READ_ONLY_OPTION = '-c default_transaction_read_only=on'

/**
 * One address for each host of a PostgreSQL address, in order: `postgres://a:5432,b:5432/db` names two. They are as the driver takes them:
 * without `target_session_attrs`, which it does not know, and with `verify-full` for the modes that it treats alike. With `readOnly` the
 * server refuses writes of a connection, whatever the address says.
 */
export function hostAddresses(url: string, { readOnly = false } = {}): string[] {
  const [, scheme = '', user = '', hosts = '', rest = ''] = PARTS.exec(url) ?? []
  const given = optionOf(url, 'options') ?? ''
  const path = withOptions(rest, (name, value) => {
    if (['target_session_attrs', 'channel_binding'].includes(name)) return null
    if (name === 'sslrootcert' && value === 'system') return null
    if (name === 'sslmode' && value !== 'disable' && value !== 'no-verify') return 'sslmode=verify-full'
    return name === 'options' && readOnly ? null : undefined
  })
  const guard = `options=${encodeURIComponent(`${given} ${READ_ONLY_OPTION}`.trim())}`
  const guarded = readOnly ? `${path}${path.includes('?') ? '&' : '?'}${guard}` : path
  return hosts.split(',').map((host) => `${scheme}${user}${host}${guarded}`)
}

/** The part from the path on, with each option dropped (`null`), replaced, or left as it is (`undefined`). */
function withOptions(
  rest: string,
  change: (name: string, value: string) => string | null | undefined,
): string {
  const [path = '', query] = rest.split(/\?(.*)/s)
  const options = (query ?? '').split('&').flatMap((option) => {
    const [[name, value] = ['', '']] = new URLSearchParams(option)
    const changed = change(name, value)
    return changed === null || option === '' ? [] : [changed ?? option]
  })
  return options.length === 0 ? path : `${path}?${options.join('&')}`
}

function optionOf(url: string, name: string): string | null {
  return new URLSearchParams(url.split(/\?(.*)/s)[1]).get(name)
}

const ENCODE =
  'has a character in its password that must be percent-encoded: @ as %40, / as %2F, ? as %3F, # as %23, % as %25, & as %26'

/** What is wrong with a PostgreSQL address, `null` if nothing is. Shows no part of a password. */
export function addressProblem(url: string): string | null {
  const [, , user = '', hosts = '', rest = ''] = PARTS.exec(url) ?? []
  // Behind the hosts there is no `@` and no `#`: the password is longer than it was read.
  if (/[@#]/.test(rest) || !isDecodable(user) || !isDecodable(rest.split('?')[0] ?? '')) return ENCODE
  if (!hostAddresses(url).every((address) => URL.canParse(address.replace('@/', '@socket/')))) {
    return 'must be sqlite:PATH of a file or postgres://USER:PASSWORD@HOST/DATABASE'
  }
  const names = hosts.split(',')
  if (names.length > 1 && names.includes('')) return 'names an empty host'
  return optionProblem(new URLSearchParams(rest.split(/\?(.*)/s)[1]))
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function optionProblem(options: URLSearchParams): string | null {
  const names = [...options.keys()]
  const unknown = names.find((name) => !OPTIONS.includes(name))
  if (unknown !== undefined) return options.has('password') ? ENCODE : unknownOption(unknown)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) return `gives the option ${twice} twice`
  if (/,/.test(options.get('host') ?? '')) {
    return 'lists its hosts in "host=": write them as postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE'
  }
  if (!WRITABLE.includes(options.get('target_session_attrs') ?? 'primary')) {
    return 'must have target_session_attrs=read-write or primary, since the service writes'
  }
  if (!SSL_MODES.includes(options.get('sslmode') ?? 'disable')) {
    return `must have one of these as sslmode: ${SSL_MODES.join(', ')}`
  }
  // The read-only option of commands is appended to them, and an escape would swallow it.
  if (options.get('options')?.includes('\\')) return 'must not have a backslash in options='
  return fileProblem(options)
}

function unknownOption(name: string): string {
  const shown = name.slice(0, 40)
  if (name === 'ssl') return 'has the unknown option ssl; write sslmode=require'
  return `has the unknown option ${shown}.${didYouMean(shown, OPTIONS)} Known are ${OPTIONS.join(', ')}`
}

/** The driver reads these files again for each connection, so that they can be renewed. */
function fileProblem(options: URLSearchParams): string | null {
  for (const name of FILES) {
    const file = options.get(name)
    if (file === null || (name === 'sslrootcert' && file === 'system')) continue
    try {
      if (!readFileSync(file, 'utf8').includes('-----BEGIN '))
        return `names a file without PEM as ${name}: ${file}`
    } catch (error) {
      return `names a file as ${name} that cannot be read: ${file} (${(error as NodeJS.ErrnoException).code})`
    }
  }
  return null
}

/** The host and port that one address names, for messages. */
export function hostOf(address: string): string {
  const { host } = new URL(address.replace('@/', '@socket/'))
  return host === '' || host === 'socket' ? 'a local socket' : host
}

/** The hosts of a PostgreSQL address, for messages. */
export function hostsOf(url: string): string {
  return hostAddresses(url).map(hostOf).join(', ')
}

/** The address without its password, for messages and for what `ps` shows. */
export function withoutPassword(url: string): string {
  const [, scheme = '', user = '', hosts = '', rest = ''] = PARTS.exec(url) ?? []
  const name = user.replace(/:.*@$/s, '@')
  return `${scheme}${name}${hosts}${withOptions(rest, (option) => (option === 'password' ? null : undefined))}`
}

/** The password that an address names; empty where it names none. */
export function passwordOf(url: string): string {
  const [first = ''] = hostAddresses(url)
  return optionOf(url, 'password') ?? decodeURIComponent(new URL(first.replace('@/', '@socket/')).password)
}

/** The same servers with another database. */
export function withDatabaseName(url: string, name: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/[^/?#]*)(?:\/[^?#]*)?/, `$1/${encodeURIComponent(name)}`)
}

/** The database that an address names; the user's own name where it names none, as PostgreSQL's clients take it. */
export function databaseNameOf(url: string): string {
  const [first = ''] = hostAddresses(url)
  const { pathname, username } = new URL(first)
  return decodeURIComponent(pathname.slice(1)) || decodeURIComponent(username)
}
