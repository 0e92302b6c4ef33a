import { parameterName } from '../offers/product-url.rule.ts'

/** The parameter by which creators tell their own placements apart. */
export const SUB_ID = 'sub'
/** In bytes. Nothing is forwarded of a query with more than this. */
const MOST_FORWARDED = 2048
/** Joiners belong to Urdu words and to emoji; alone they show nothing. */
const PRINTABLE =
  /^(?:[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?<=[^\0-\x7f])(?:\u200c|\u200d|\ufe0f)){1,64}$/u

/** What a visit's query says. */
export interface VisitQuery {
  /** The parameters for the product page, as they came; empty for none. */
  forwarded: string
  /** `null` unless it has 1 to 64 printable characters. */
  subId: string | null
}

/** Reads the query of a visit, each byte one character; parameters of these names are not forwarded. */
export function readVisitQuery(query: string, ownNames: ReadonlySet<string>): VisitQuery {
  // Browsers send ASCII only; anything else would not fit into a header.
  const pieces = query.replace(/[^!-~]/g, percentEncode).split('&')
  const named = pieces.map((piece) => ({ piece, name: parameterName(piece) }))
  const sub = named.find(({ name }) => name === SUB_ID)
  const others = named.filter(({ piece, name }) => piece !== '' && name !== SUB_ID && !ownNames.has(name))
  const forwarded = others.map(({ piece }) => piece).join('&')
  return {
    forwarded: forwarded.length > MOST_FORWARDED ? '' : forwarded,
    subId: sub ? subIdIn(sub.piece) : null,
  }
}

function percentEncode(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`
}

function subIdIn(piece: string): string | null {
  const text = new URLSearchParams(`&${piece}`).get(SUB_ID)?.trim() ?? ''
  return PRINTABLE.test(text) ? text : null
}

/** A product address with a visit's parameters at the end of its query. `fragment` is the end of `url`, from its `#` on. */
export function withForwarded(url: string, fragment: string, forwarded: string): string {
  if (forwarded === '') return url
  const page = url.slice(0, url.length - fragment.length)
  const separator = !page.includes('?') ? '?' : /[?&]$/.test(page) ? '' : '&'
  return page + separator + forwarded + fragment
}
