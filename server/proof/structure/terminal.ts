import { type Breach, breachesIn, isTest, type SourceTree } from './source-tree.ts'

/** The files that may write to the terminal: what goes through them is made printable. */
const WRITERS = ['cli/terminal-text.ts', 'cli/output.ts', 'cli/screen.ts', 'cli/whole-text.ts']
/** The files that may ask: their questions are made printable. */
const ASKERS = ['cli/terminal.ts', 'cli/read-password.ts']

const WRITES =
  /\bconsole\s*(?:\.|\[)|\.\s*write\s*\(|\bwriteSync\b|\bstyleText\b|\bcreateWriteStream\b|\bprocess\s*\.\s*std(?:out|err)\s*\.\s*(?:write|end|_write|cork)\b/g
const ASKS = /\.\s*question\s*\(/g

/** Texts of users must not reach a terminal as they are, so commands never write to it themselves. */
export function findRawTerminalWrites(tree: SourceTree): Breach[] {
  return tree
    .filter(({ path }) => path.startsWith('cli/') && !path.startsWith('cli/testing/'))
    .filter((file) => !isTest(file.path))
    .flatMap((file) => [
      ...(WRITERS.includes(file.path)
        ? []
        : breachesIn(file, WRITES, (match) => `"${match}" writes raw text; use cli/terminal-text.ts`)),
      ...(ASKERS.includes(file.path)
        ? []
        : breachesIn(file, ASKS, (match) => `"${match}" asks with raw text; use cli/terminal.ts`)),
    ])
}
