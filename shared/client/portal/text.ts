import { displayMoney, parseMoney } from '../index.ts'
import { kept, store } from './store.ts'

export type Language = 'en' | 'ur'

const LANGUAGE = 'portal.language'
let urdu: Record<string, string> = {}
/** What the service says: sentences, with `{name}` for a value, and codes for all others that it refuses with. */
let service: Record<string, string> = {}
const current = store<Language>('en')

/**
 * The text in the current language. `{name}` stands for a value, which is isolated: names of others must not turn the sentence around. Keys
 * are literals, so that a test finds those without an Urdu text.
 */
export function t(english: string, values: Record<string, string | number> = {}): string {
  const text = (current.get() === 'ur' && urdu[english]) || english
  return filled(text, values)
}

const filled = (text: string, values: Record<string, string | number> = {}) =>
  text.replace(/\{(\w+)\}/g, (whole, name: string) => `\u2068${values[name] ?? whole}\u2069`)

/** A sentence of the service in the current language: by its words, else by the code of its problem. */
export function translated(sentence: string, code = ''): string {
  if (current.get() === 'en') return sentence
  for (const [english, text] of Object.entries(service)) {
    const pattern = english.replaceAll(/[.*+?()[\]|\\^$]/g, '\\$&').replaceAll(/\{(\w+)\}/g, '(?<$1>.+)')
    const found = new RegExp(`^${pattern}$`).exec(sentence)
    const values = Object.entries(found?.groups ?? {}).map(([name, value]) => [name, translated(value)])
    if (found) return filled(text, Object.fromEntries(values))
  }
  return urdu[sentence] ?? urdu[sentenceOf(sentence)] ?? service[code] ?? sentence
}

/** A name of the wire that has no text, such as `late_orders`, as a start of a sentence. */
export const sentenceOf = (name: string): string =>
  name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ')

/** Marks a text that is shown with `t` elsewhere. */
export const key = (english: string): string => english

/** Makes the component render again when the language changes. */
export const useLanguage = (): Language => current.use()

export async function setLanguage(language: Language): Promise<void> {
  if (language === 'ur') ({ urdu, service } = await import('./urdu.ts'))
  kept.set(LANGUAGE, language)
  Object.assign(document.documentElement, { lang: language, dir: language === 'ur' ? 'rtl' : 'ltr' })
  current.set(language)
}

/** The language of the last visit, else the browser's. */
export function startLanguage(): Promise<void> {
  const preferred = kept.get(LANGUAGE) ?? navigator.language
  return setLanguage(preferred.startsWith('ur') ? 'ur' : 'en')
}

const locale = () => (current.get() === 'ur' ? 'ur-PK' : 'en-GB')

/** An amount of the wire, such as `1250.00`, for people. */
export function money(amount: string): string {
  const paisa = parseMoney(amount)
  return paisa === null ? amount : displayMoney(paisa)
}

/** A moment of the wire in Pakistan's time. */
export const when = (at: string, style: 'date' | 'minute' = 'minute'): string =>
  dates(style).format(new Date(at))

function dates(style: 'date' | 'minute') {
  const time = style === 'minute' ? ({ timeStyle: 'short' } as const) : {}
  return new Intl.DateTimeFormat(locale(), { dateStyle: 'medium', timeZone: 'Asia/Karachi', ...time })
}

/** A period of the wire, whose end is exclusive, in days. */
export const period = (from: string, to: string): string =>
  dates('date').formatRange(new Date(from), new Date(Date.parse(to) - 1))

/** A day such as 20 Nov. Seconds since 1970 of its midnight in UTC. */
export const dayAndMonth = (seconds: number): string =>
  new Intl.DateTimeFormat(locale(), { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(
    seconds * 1000,
  )

export const count = (value: number): string => new Intl.NumberFormat(locale()).format(value)

export const percent = (value: number): string => `${value}%`
