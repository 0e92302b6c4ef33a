export interface SplitSource {
  /** The source with comments and the insides of strings, templates and regular expressions blanked out. */
  code: string
  /** The source with everything but its comments blanked out. */
  comments: string
  /** The source with everything but the insides of its literals blanked out. */
  literals: string
}

const BEFORE_REGEX = new Set('(,=:[!&|?{};+-*%~^<>')
const WORDS_BEFORE_REGEX = /\b(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/

/** Separates code, comments and literals. The results have the length and the lines of the original, so positions agree. */
export function splitSource(text: string): SplitSource {
  const code: string[] = []
  const comments: string[] = []
  const literals: string[] = []
  /** The brace depths at which a template literal continues after `${...}`. */
  const templates: number[] = []
  let depth = 0
  let at = 0
  const put = (end: number, kind: 'code' | 'comment' | 'literal') => {
    const part = text.slice(at, end)
    code.push(kind === 'code' ? part : blank(part))
    comments.push(kind === 'comment' ? part : blank(part))
    literals.push(kind === 'literal' ? part : blank(part))
    at = end
  }
  const putTemplate = () => {
    const end = endOfTemplate(text, at)
    put(end, 'literal')
    if (text.startsWith('${', at)) {
      templates.push(depth)
      put(at + 2, 'code')
    } else put(at + 1, 'code')
  }
  while (at < text.length) {
    const char = text.charAt(at)
    if (text.startsWith('//', at) || (at === 0 && text.startsWith('#!')))
      put(endOf(text, '\n', at), 'comment')
    else if (text.startsWith('/*', at)) put(Math.min(endOf(text, '*/', at + 2) + 2, text.length), 'comment')
    else if (char === "'" || char === '"') {
      put(at + 1, 'code')
      put(endOfString(text, char, at), 'literal')
      put(at + 1, 'code')
    } else if (char === '/' && startsRegex(code)) {
      put(at + 1, 'code')
      put(endOfRegex(text, at), 'literal')
      put(at + 1, 'code')
    } else if (char === '`' || (char === '}' && templates.at(-1) === depth)) {
      if (char === '}') templates.pop()
      put(at + 1, 'code')
      putTemplate()
    } else {
      if (char === '{') depth++
      if (char === '}') depth--
      put(at + 1, 'code')
    }
  }
  const [all, notes, texts] = [code, comments, literals].map((parts) => parts.join('').slice(0, text.length))
  return { code: all ?? '', comments: notes ?? '', literals: texts ?? '' }
}

/** The line, from 1, of a position. */
export function lineAt(text: string, position: number): number {
  return text.slice(0, position).split('\n').length
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ')
}

function endOf(text: string, mark: string, from: number): number {
  const end = text.indexOf(mark, from)
  return end === -1 ? text.length : end
}

function endOfString(text: string, quote: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== quote && text[at] !== '\n') at += text[at] === '\\' ? 2 : 1
  return Math.min(at, text.length)
}

function endOfTemplate(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== '`' && !text.startsWith('${', at)) at += text[at] === '\\' ? 2 : 1
  return Math.min(at, text.length)
}

function endOfRegex(text: string, from: number): number {
  let at = from
  let inClass = false
  while (at < text.length && text[at] !== '\n' && (inClass || text[at] !== '/')) {
    if (text[at] === '[') inClass = true
    if (text[at] === ']') inClass = false
    at += text[at] === '\\' ? 2 : 1
  }
  return Math.min(at, text.length)
}

/** A slash divides after a value and opens a regular expression anywhere else. */
function startsRegex(before: string[]): boolean {
  const recent = before.slice(-80).join('').trimEnd()
  const last = recent.at(-1)
  return last === undefined || BEFORE_REGEX.has(last) || WORDS_BEFORE_REGEX.test(recent)
}
