/** Words that examples have in place of a value, wherever they stand between other characters. */
const PART =
  /(?<![A-Za-z0-9])(?:replace(?:[-_]?(?:me|this))?|change[-_]?(?:me|this)|placeholder|your[-_](?:domain|host|user|key|api[-_]?key|password|secret|token|email))(?![A-Za-z0-9])/i
/** The same, and what could be a part of a real value, where nothing else is said. */
const WHOLE = /^(?:replace(?: me)?|change ?me|placeholder|todo|fixme|x{3,}|\.{3}|…|<[^<>@]*>)$/i
const HOSTS = /(?:\/\/(?:[^\s/@]*@)?|@)([A-Za-z0-9.-]+)/g

/**
 * What in a setting's text an example left to be replaced, such as `replace` in `postgres://affiliate:replace@127.0.0.1/affiliate`;
 * `null` without such a word. A text with blanks is prose, in which only hosts and the whole are looked at.
 */
export function placeholderIn(text: string): string | null {
  const whole = WHOLE.exec(text.trim())
  if (whole) return whole[0]
  const parts = /\s/.test(text) ? hostsIn(text).join(' ') : text
  return PART.exec(parts)?.[0] ?? null
}

function hostsIn(text: string): string[] {
  return [...text.matchAll(HOSTS)].map(([, host = '']) => host)
}

/** A host in an address or mailbox that can be no one's: under `example` or `invalid`; `null` without one. */
export function exampleHostIn(text: string): string | null {
  const isExample = (host: string) => {
    const labels = host.toLowerCase().split('.')
    return labels.includes('example') || labels.at(-1) === 'invalid'
  }
  return hostsIn(text).find(isExample) ?? null
}
