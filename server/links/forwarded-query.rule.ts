import { parameterName } from '../offers/product-url.rule.ts'

/** The parameter by which creators tell their own placements apart. */
const SUB_ID = 'sub'
/** In bytes. Nothing is forwarded of a query with more than this. */
const MOST_FORWARDED = 2048
/** Joiners belong to Urdu words and to emoji; alone they show nothing. */
const PRINTABLE =
  /^(?:[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?<=[^\0-\x7f])(?:\u200c|\u200d|\ufe0f)){1,64}$/u

/** Needs no decoding. */
const PLAIN_SUB_ID = /^sub=([A-Za-z0-9_.~-]{1,64})$/

/** What a visit's query says. */
export interface VisitQuery {
  /** The parameters for the product page, as they came; empty for none. */
  forwarded: string
  /** `null` unless it has 1 to 64 printable characters. */
  subId: string | null
}

/** Reads the query of a visit, visible ASCII as in each request; parameters of these names are not forwarded. One pass, for the hot path. */
export function readVisitQuery(query: string, ownNames: ReadonlySet<string>): VisitQuery {
  let forwarded = ''
  let sub: string | undefined
  for (let start = 0, end = 0; start < query.length; start = end + 1) {
    end = query.indexOf('&', start)
    if (end === -1) end = query.length
    if (end === start) continue
    const piece = query.slice(start, end)
    const name = parameterName(piece)
    if (name === SUB_ID) sub ??= piece
    else if (!ownNames.has(name)) forwarded += forwarded === '' ? piece : `&${piece}`
  }
  return {
    forwarded: forwarded.length > MOST_FORWARDED ? '' : forwarded,
    subId: sub === undefined ? null : subIdIn(sub),
  }
}

function subIdIn(piece: string): string | null {
  const plain = PLAIN_SUB_ID.exec(piece)?.[1]
  if (plain !== undefined) return plain
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
