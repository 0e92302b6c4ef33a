import { lineAt } from './source-text.ts'
import type { SourceTree, Violation } from './source-tree.ts'

/** Code whose texts are still to be rewritten, and landed migrations, which stay as they are. */
const EXEMPT = [
  // This check names the words.
  'server/test/structure',
  // The account "nobody" of Unix.
  'scripts/testing/postgres-binaries.ts',
  'server/migrations/',
  'cli/commands/billing/',
  'cli/commands/db/',
  'cli/commands/demo.ts',
  'cli/commands/doctor.ts',
  'cli/commands/flagged/',
  'cli/commands/ledger/',
  'cli/commands/serve.test.ts',
  'cli/commands/serve.ts',
  'cli/commands/status/',
  'cli/commands/users/',
  'cli/commands/webhooks/',
  'cli/context.ts',
  'cli/demo/',
  'cli/doctor/',
  'cli/failures.ts',
  'cli/main.ts',
  'cli/replay/',
  'cli/terminal/',
  'cli/test/',
  'scripts/bench/',
  'scripts/proof/planted-bugs.ts',
  'server/billing/',
  'server/clicks/',
  'server/http/',
  'server/jobs/order-reader',
  'server/ledger/',
  'server/links/',
  'server/moderation/',
  'server/offers/',
  'server/payouts/',
  'server/platform/api/',
  'server/platform/cache/',
  'server/platform/config.test.ts',
  'server/platform/config.ts',
  'server/platform/crypto/',
  'server/platform/database/',
  'server/platform/network/',
  'server/platform/private-files.ts',
  'server/platform/signals.test.ts',
  'server/platform/signals.ts',
  'server/platform/with-timeout.ts',
  'server/reports/',
  'server/sales/',
  'server/shopify/',
  'server/stores/',
  'server/users/',
  'server/verification/',
  'shared/client.test.ts',
  'shared/schemas/',
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
  'no longer': 'describe what is, not what was',
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
