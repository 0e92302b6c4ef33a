const SLUG = /^[0-9a-z]{4,32}$/
/** A longer text is not a slug. */
const MOST_CHARACTERS = 512
/** Direction marks, zero-width characters, variation selectors. */
const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu
/** What sentences, chat programs and keyboards leave at the end: punctuation of any script, quotes, emoji, spaces, slashes. */
const TRAILING = /^[\p{P}\p{S}\p{Z}\p{Cc}]$/u

/** The path of a link, however many slashes and capitals it is written with. */
const LINK_PATH = /^\/+go\/+/i
/** Where a slug ends, also percent-encoded; apps append `&name=value` without a `?`. */
const QUERY_OR_FRAGMENT = /[?&#]|%(?:3f|26|23)/i

/** Whether a text can be a slug. Accepts more than `randomSlug` makes, so that its format can change. */
export function canBeSlug(text: string): boolean {
  return SLUG.test(text)
}

/** The slug in a text as people type and paste it; `null` if what remains is not exactly a slug. */
export function slugIn(text: string): string | null {
  if (text.length > MOST_CHARACTERS) return null
  const characters = [...text.replace(INVISIBLE, '')]
  while (TRAILING.test(characters.at(-1) ?? '')) characters.pop()
  const rest = characters.join('').trimStart()
  // Checked before it is lowered: the lower case of some other letters is in a to z.
  return /^[0-9a-zA-Z]*$/.test(rest) && canBeSlug(rest.toLowerCase()) ? rest.toLowerCase() : null
}

/** A request for a link, as it was typed. */
export interface TypedLink {
  slug: string | null
  /** Without `?`; empty if there is none. */
  query: string
}

/** Reads a request's target (path and query, ASCII) as a link; `null` for another path. */
export function readTypedLink(target: string): TypedLink | null {
  const path = LINK_PATH.exec(target)
  if (!path) return null
  const rest = target.slice(path[0].length)
  const end = QUERY_OR_FRAGMENT.exec(rest)
  const text = end ? rest.slice(0, end.index) : rest
  if (text.length > MOST_CHARACTERS) return { slug: null, query: '' }
  // A cut percent-encoding is what remains of a cut text.
  const whole = text.replace(/%[0-9a-f]?$/i, '')
  const slug = slugIn(new URLSearchParams(`slug=${whole}`).get('slug') ?? '')
  const mark = end?.[0] ?? '#'
  if (/#|23$/.test(mark)) return { slug, query: '' }
  const query = queryIn(rest.slice(text.length + mark.length))
  // With an encoded mark, what follows it is encoded too.
  return { slug, query: mark.length === 1 ? query : query.replace(/%3d/gi, '=').replace(/%26/g, '&') }
}

/** A target's query, without its fragment, which only broken clients send. */
function queryIn(text: string): string {
  const fragmentAt = text.indexOf('#')
  return fragmentAt === -1 ? text : text.slice(0, fragmentAt)
}

/** The query of a request's target without `?` and fragment. */
export function queryOf(target: string): string {
  const at = target.indexOf('?')
  return at === -1 ? '' : queryIn(target.slice(at + 1))
}
