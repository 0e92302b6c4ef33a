/** What an attacker would try first for one account. */
export interface AccountWords {
  email: string
  displayName: string
}

const SERVICE_WORDS = ['affiliate', 'marketplace', 'affiliate marketplace']
/** Neighbors in one of these, read either way and round the end, make a run. */
const RUNS = ['abcdefghijklmnopqrstuvwxyz', '0123456789', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm']
const LONGEST_UNIT = 5
const FEWEST_CHARACTERS = 4
/** Runs of at least so many characters on average are no secret. */
const RUN_LENGTH = 4

/**
 * Why a new password is too easy to guess, as the end of a sentence that starts with the field's name; `null` when it is
 * not. Length is checked elsewhere. Letter case does not make a guess harder, so it is ignored; `common` is in lower case.
 */
export function passwordWeakness(
  password: string,
  account: AccountWords,
  common: ReadonlySet<string>,
): string | null {
  const text = password.normalize('NFKC').toLowerCase()
  if (common.has(text)) return 'is one of the most used passwords: choose another one'
  if (repeats(text)) return 'repeats the same few characters: choose a longer phrase'
  if (isMadeOfRuns(text)) return 'is a sequence of neighboring letters or digits: choose a longer phrase'
  const guesses = [account.email, account.email.replace(/@.*$/s, ''), account.displayName]
  if (isOneOf(text, guesses)) return 'must not be your e-mail or display name'
  if (isOneOf(text, SERVICE_WORDS)) return 'must not be the name of this service'
  return null
}

/** Few different characters, or a unit of up to five again and again. */
function repeats(text: string): boolean {
  const characters = [...text]
  if (new Set(characters).size < FEWEST_CHARACTERS) return true
  for (let unit = 1; unit <= LONGEST_UNIT; unit += 1) {
    if (characters.every((character, index) => character === characters[index % unit])) return true
  }
  return false
}

/** `abcdefghij`, `0987654321`, `qwertyuiop`, `abcdef123456`. */
function isMadeOfRuns(text: string): boolean {
  const characters = [...text]
  let runs = 0
  let former: string | null = null
  for (const character of characters) {
    if (former === null || !areNeighbors(former, character)) runs += 1
    former = character
  }
  return runs * RUN_LENGTH <= characters.length
}

function areNeighbors(one: string, other: string): boolean {
  return (
    one === other ||
    RUNS.some((run) => {
      const [from, to] = [run.indexOf(one), run.indexOf(other)]
      if (from === -1 || to === -1) return false
      const distance = Math.abs(from - to)
      return distance === 1 || distance === run.length - 1
    })
  )
}

/** Punctuation, and digits at either end, are what people add to a word that was refused. */
function isOneOf(text: string, words: readonly string[]): boolean {
  const bare = bareWord(text)
  return words.some((word) => {
    const known = bareWord(word.normalize('NFKC').toLowerCase())
    return known !== '' && bare.replaceAll(known, '') === ''
  })
}

function bareWord(text: string): string {
  return text.replace(/[^\p{L}\p{N}]/gu, '').replace(/^\p{N}+|\p{N}+$/gu, '')
}
