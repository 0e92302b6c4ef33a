import { isTest, type SourceTree, type Violation, violationsIn } from './source-tree.ts'

/** The files that may write to the terminal: what goes through them is made printable. */
const WRITERS = [
  'cli/terminal/printable-text.ts',
  'cli/terminal/output.ts',
  'cli/terminal/screen.ts',
  'cli/terminal/list-output.ts',
]
/** The files that may ask: their questions are made printable. */
const ASKERS = ['cli/terminal/prompts.ts']

const WRITES =
  /\bconsole\s*(?:\.|\[)|\.\s*write\s*\(|\bwriteSync\b|\bstyleText\b|\bcreateWriteStream\b|\bprocess\s*\.\s*std(?:out|err)\s*\.\s*(?:write|end|_write|cork)\b/g
const ASKS = /\.\s*question\s*\(/g

/** Texts of users must not reach a terminal as they are, so commands never write to it themselves. */
export function findRawTerminalWrites(tree: SourceTree): Violation[] {
  return tree
    .filter(({ path }) => path.startsWith('cli/') && !path.startsWith('cli/test/') && !isTest(path))
    .flatMap((file) => {
      const writes = violationsIn(file, WRITES, (match) => `"${match}" writes raw text; use ${WRITERS[0]}`)
      const asks = violationsIn(file, ASKS, (match) => `"${match}" asks with raw text; use ${ASKERS[0]}`)
      return [...(WRITERS.includes(file.path) ? [] : writes), ...(ASKERS.includes(file.path) ? [] : asks)]
    })
}
