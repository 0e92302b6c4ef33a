import { escapeHtml } from '../pages.ts'

/** What a search looks through: a heading with the text up to the next one. */
export interface GuideSection {
  guide: string
  anchor: string
  /** As plain text, like `heading` and `text`. */
  title: string
  heading: string
  text: string
}

const HEADING = /<h[1-3] id="([^"]*)">(.*?)(?: <a class="anchor".*?)?<\/h[1-3]>/
const MOST_RESULTS = 20
const MOST_TERMS = 8
/** Characters of a result's text around the first match. */
const BEFORE = 60
const AFTER = 180

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"' }

function plainText(html: string): string {
  const characterOf = (name: string) =>
    ENTITIES[name] ?? String.fromCodePoint(Number(name.replace('#x', '0x').replace('#', '')))
  return html
    .replace(/<(?!\/?(code|span|strong|em|a)\b)[^>]+>/g, ' ')
    .replace(/<[^>]+>/g, '')
    .replace(/&(#x?[\da-f]+|lt|gt|amp|quot);/g, (_, name: string) => characterOf(name))
    .replace(/\s+/g, ' ')
    .trim()
}

/** The sections of a rendered guide. */
export function sectionsOf(guide: string, body: string): GuideSection[] {
  const [, ...parts] = body.split(new RegExp(HEADING, 'g'))
  const triples = Array.from({ length: parts.length / 3 }, (_, at) => parts.slice(3 * at, 3 * at + 3))
  const title = plainText(triples[0]?.[1] ?? '')
  return triples.map(([anchor = '', heading = '', text = '']) => ({
    guide,
    anchor,
    title,
    heading: plainText(heading),
    text: plainText(text),
  }))
}

/** The sections that have every word of the query, best first, as items of a list. */
export function searchGuides(sections: readonly GuideSection[], query: string): string[] {
  const terms =
    query
      .toLowerCase()
      .match(/[\p{L}\p{N}_./#-]+/gu)
      ?.slice(0, MOST_TERMS) ?? []
  if (terms.length === 0) return []
  const found = sections.flatMap((section) => {
    const score = scoreOf(section, terms)
    return score === 0 ? [] : [{ section, score }]
  })
  return found
    .sort((one, other) => other.score - one.score)
    .slice(0, MOST_RESULTS)
    .map(({ section }) => resultItem(section, terms))
}

/** 0 unless every term occurs; headings count most. */
function scoreOf({ title, heading, text }: GuideSection, terms: readonly string[]): number {
  const [inTitle, inHeading, inText] = [title, heading, text].map((part) => part.toLowerCase())
  const scores = terms.map((term) => {
    const times = (inText?.split(term).length ?? 1) - 1
    return (inHeading?.includes(term) ? 10 : 0) + (inTitle?.includes(term) ? 4 : 0) + Math.min(times, 3)
  })
  return scores.includes(0) ? 0 : scores.reduce((sum, score) => sum + score, 0)
}

function resultItem({ guide, anchor, title, heading, text }: GuideSection, terms: readonly string[]): string {
  const name = heading === title ? title : `${title}: ${heading}`
  const places = terms.map((term) => text.toLowerCase().indexOf(term)).filter((place) => place >= 0)
  const start = Math.max(0, Math.min(...places, text.length) - BEFORE)
  const shown = places.length === 0 ? text.slice(0, AFTER) : text.slice(start, start + BEFORE + AFTER)
  const cut = start + shown.length < text.length ? '…' : ''
  return `<li><a href="guides/${guide}#${anchor}">${escapeHtml(name)}</a><p>${start > 0 ? '…' : ''}${marked(shown, terms)}${cut}</p></li>\n`
}

/** Text as HTML, with the terms marked. */
function marked(text: string, terms: readonly string[]): string {
  const pattern = new RegExp(`(${terms.map((term) => term.replaceAll('.', '\\.')).join('|')})`, 'giu')
  const parts = text.split(pattern).map(escapeHtml)
  return parts.map((part, at) => (at % 2 === 1 ? `<mark>${part}</mark>` : part)).join('')
}
