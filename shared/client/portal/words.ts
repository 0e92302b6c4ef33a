import names from './names.json' with { type: 'json' }
import { sentenceOf, t } from './text.ts'

/** What enum values of the wire are called, and their tone: `good`, `warn` or `bad`. */
const WORDS: Record<string, string[]> = names.words
/** What holds if a check of a sale passes, by its name. */
export const CHECKS: Record<string, string> = names.checks
export const REJECTION_REASONS = Object.keys(CHECKS)

/** What a store's status and refusals mean, and what to do. */
export const ADVICE: Record<string, string> = names.advice
/** What an offer's vetting means. */
export const VETTING: Record<string, string> = names.vetting
/** What a suspension does to each figure of its preview. */
export const EFFECTS: Record<string, string> = names.effects

/** An enum value of the wire for people. */
export const word = (value: string): string => t(WORDS[value]?.[0] ?? sentenceOf(value))

export const toneOf = (value: string): string => WORDS[value]?.[1] ?? ''
