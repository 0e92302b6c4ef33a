import { lineAt } from './source-text.ts'
import type { SourceTree, Violation } from './source-tree.ts'

const EXEMPT = [
  // This check names the words.
  'server/test/structure',
  // The account "nobody" of Unix.
  'scripts/testing/postgres-binaries.ts',
  // The text of a license.
  'server/users/common-passwords.json',
]

/** Words of a translated style, and what to write instead. */
export const WORDS: Record<string, string> = {
  told: 'name the call: "notified", "given", "passed"',
  nobody: '"no one", "no caller", "nothing"',
  somebody: '"someone", "a caller", "another process"',
  anybody: '"anyone", "any caller"',
  anew: '"again"',
  whoever: '"callers", "the caller"',
  whom: 'split the sentence',
  'of which': 'split the sentence',
  'as before': 'describe what is, not what was',
  'any more': 'describe what is, not what was',
  'for ever': '"forever", "without end"',
  'in vain': '"without success"',
  'all the same': '"still", "anyway"',
  'twice over': '"twice"',
  reckon: '"compute"',
  reckoned: '"computed"',
  lest: '"so that ... not"',
  hither: '"here"',
  thither: '"there"',
  mend: '"fix", "repair"',
  mended: '"fixed", "repaired"',
}

const PATTERN = new RegExp(
  String.raw`(?<![\w-])(?:${Object.keys(WORDS).join('|').replaceAll(' ', String.raw`[\s*]+`)})(?![\w-])`,
  'gi',
)

/** Words that must not appear in comments or texts. */
export function findTranslatedWords(tree: SourceTree): Violation[] {
  return tree
    .filter(({ path }) => !EXEMPT.some((folder) => path.startsWith(folder)))
    .flatMap(({ path, text, comments, literals }) =>
      [comments, literals].flatMap((part) =>
        [...part.matchAll(PATTERN)].map((match) => {
          const word = match[0].toLowerCase().replace(/[\s*]+/g, ' ')
          return { path, line: lineAt(text, match.index), why: `says "${word}": ${WORDS[word]}` }
        }),
      ),
    )
}
