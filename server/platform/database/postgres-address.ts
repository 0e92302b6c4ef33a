/** `postgres://USER:PASSWORD@`, the hosts, and the rest. As in URLs, the last `@` before the path ends the password. */
const PARTS = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/s

/** What `target_session_attrs` may be: the service writes, so it needs the primary. */
const WRITABLE = ['read-write', 'primary']

/**
 * One address for each host of a PostgreSQL address, in order: `postgres://a:5432,b:5432/db` names two. They are without
 * `target_session_attrs`, which the driver does not know.
 */
export function hostAddresses(url: string): string[] {
  const [, scheme = '', user = '', hosts = '', rest = ''] = PARTS.exec(url) ?? []
  const path = rest.replace(
    /([?&])target_session_attrs=[^&#]*(&|$)/,
    (_all, before, after) => after && before,
  )
  return hosts.split(',').map((host) => `${scheme}${user}${host}${path}`)
}

/** What is wrong with a PostgreSQL address, `null` if nothing is. */
export function addressProblem(url: string): string | null {
  const [, , user = '', hosts = '', rest = ''] = PARTS.exec(url) ?? []
  if (!hostAddresses(url).every((address) => URL.canParse(address.replace('@/', '@socket/')))) {
    return 'must be sqlite:PATH of a file or postgres://…'
  }
  const names = hosts.split(',')
  if (names.length > 1 && names.includes('')) return 'names an empty host'
  const { searchParams } = new URL(`postgres://${user}socket${rest}`)
  if (/,/.test(searchParams.get('host') ?? '')) {
    return 'lists its hosts in "host=": write them as postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE'
  }
  const wanted = searchParams.getAll('target_session_attrs')
  if (wanted.every((value) => WRITABLE.includes(value))) return null
  return `has target_session_attrs=${wanted.join(',')}: it must be read-write or primary, since the service writes`
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
  return url.replace(/^(postgres(?:ql)?:\/\/[^:/?#]*):[^/?#]*@/, '$1@')
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
