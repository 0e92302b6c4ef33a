import type { Ddl } from './ddl.ts'

/** Letters that folded-text.ts reads as the first of their line, and did not before. */
const ALIKE = [
  '\u06c1\u0629\u06be\u06c3\u06ff',
  '\u06cc\u0620\u063d\u063e\u063f\u06cd\u06ce\u06d0\u06d1',
  '\u06a9\u063b\u063c\u06aa',
  '\u0627\u0671',
]
const PAIRS = ALIKE.flatMap(([first = '', ...others]) => others.map((letter) => ({ letter, first })))

/** Folds the stored words and keys of offers again. May run more than once. */
export function foldOffers({ onSqlite, onPostgres }: Ddl): string[] {
  const letters = PAIRS.map(({ letter }) => letter).join('')
  const firsts = PAIRS.map(({ first }) => first).join('')
  return ['search_words', 'category_key', 'niche_key'].flatMap((column) => {
    const replaced = PAIRS.reduce(
      (text, { letter, first }) => `replace(${text}, '${letter}', '${first}')`,
      column,
    )
    const translated = `translate(${column}, '${letters}', '${firsts}')`
    return [
      onSqlite(`update "offers" set "${column}" = ${replaced} where ${column} <> ${replaced}`),
      onPostgres(`update "offers" set "${column}" = ${translated} where ${column} <> ${translated}`),
    ]
  })
}

export const up = (ddl: Ddl): string[] => [
  ...foldOffers(ddl),
  'alter table "export_jobs" add column "excel" integer',
  'alter table "stores" add column "own_hosts" text',
  'drop table "store_hosts"',
]
