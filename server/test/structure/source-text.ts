import ts from 'typescript-5'

export interface SplitSource {
  /** The source with comments and the insides of strings, templates and regular expressions blanked out. */
  code: string
  /** The source with everything but its comments blanked out. */
  comments: string
  /** The source with everything but the insides of its literals blanked out. */
  literals: string
}

type Range = readonly [start: number, end: number]

/** Separates code, comments and literals. The results have the length and the lines of the original, so positions agree. */
export function splitSource(path: string, text: string): SplitSource {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest)
  const literals: Range[] = []
  const visit = (node: ts.Node): void => {
    const end = endOfLiteral(node, text)
    if (end === null) ts.forEachChild(node, visit)
    else literals.push([node.getStart(source) + 1, end])
  }
  visit(source)
  const { inside, outside } = split(text, literals)
  // Outside of literals nothing else looks like one.
  const comments = [...outside.matchAll(/\/\/.*|\/\*[\s\S]*?\*\/|^#!.*/g)]
  const rest = split(
    outside,
    comments.map(({ index, 0: comment }) => [index, index + comment.length]),
  )
  return { code: rest.outside, comments: rest.inside, literals: inside }
}

/** Where the inside of a literal ends; `null` for other tokens. */
function endOfLiteral(token: ts.Node, text: string): number | null {
  if (ts.isRegularExpressionLiteral(token)) return text.lastIndexOf('/', token.end)
  if (ts.isTemplateHead(token) || ts.isTemplateMiddle(token)) return token.end - 2
  const isText = ts.isStringLiteral(token) || ts.isNoSubstitutionTemplateLiteral(token)
  return isText || ts.isTemplateTail(token) ? token.end - 1 : null
}

/** The text with these ranges blanked out, and with all but them. */
function split(text: string, ranges: readonly Range[]): { inside: string; outside: string } {
  const parts = { inside: '', outside: '' }
  let at = 0
  for (const [start, end] of [...ranges, [text.length, text.length] as const]) {
    const [before, within] = [text.slice(at, start), text.slice(start, end)]
    parts.inside += blank(before) + within
    parts.outside += before + blank(within)
    at = end
  }
  return parts
}

/** The line, from 1, of a position. */
export function lineAt(text: string, position: number): number {
  return text.slice(0, position).split('\n').length
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ')
}
