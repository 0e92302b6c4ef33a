/** Letters, digits, `_` or `-` that JSON or an address may hold in another spelling. */
const OTHER_SPELLING = /\\u00(?:2d|3\d|[4-7])|%(?:2d|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9a])/i
const HEAD = /^\{\s{0,9}"id"\s{0,9}:/
const LINES = /"line_items"\s{0,9}:\s{0,9}\[/
const CODES = /"discount_codes"\s*:\s*\[\s*[^\]\s]/
/** Staff and apps name codes there too. */
const APPLIED = /"type"\s*:\s*"(?:manual|discount_code)"/
const CANCELLED = /"cancelled_at"\s*:\s*[^n\s]/

/**
 * Whether an order's body may lead to a link, or cancels the order, without parsing it: most orders of a store do neither. Never false for
 * a body in which `readOrderFacts` finds a reference, a discount code or a cancellation; true for a body that does not look like an order.
 */
export function mayNameLink(body: string, trackingParameter: string): boolean {
  const looksLikeOrder = HEAD.test(body) && LINES.test(body) && body.trimEnd().endsWith('}')
  if (!looksLikeOrder || spellingsOf(trackingParameter).test(body) || OTHER_SPELLING.test(body)) return true
  return CODES.test(body) || APPLIED.test(body) || CANCELLED.test(body)
}

const spellings = new Map<string, RegExp>()

/** A name in any case and with any marks between its letters and digits, as `readReferences` compares names. */
function spellingsOf(name: string): RegExp {
  const known = spellings.get(name)
  if (known) return known
  const letters = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  const made = new RegExp([...letters].join('[^a-z0-9]*'), 'iu')
  spellings.set(name, made)
  return made
}
