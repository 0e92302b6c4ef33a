import type { Story } from './story.ts'

/** What things are called in a story: merchants A, B, …, creators K, L, …, `store A1`, `offer A2`, `link K-A2`. */

export const MERCHANTS = ['A', 'B', 'C']
export const CREATORS = ['K', 'L', 'M', 'N']

export interface Names {
  merchants: string[]
  creators: string[]
}

export function namesOf(story: Story): Names {
  return {
    merchants: MERCHANTS.slice(0, story.merchants.length),
    creators: CREATORS.slice(0, story.creators.length),
  }
}

/** The nth of a list that is walked in circles. */
export function pick<T>(list: readonly T[], n: number): T {
  return list[n % list.length] as T
}

export function storeNames(story: Story, merchant: string): string[] {
  const plan = story.merchants[MERCHANTS.indexOf(merchant)]
  return plan?.stores === 2 ? [`store ${merchant}1`, `store ${merchant}2`] : [`store ${merchant}1`]
}

export function offerNames(story: Story, merchant: string): string[] {
  const offers = story.merchants[MERCHANTS.indexOf(merchant)]?.offers ?? []
  return offers.map((_, index) => `offer ${merchant}${index + 1}`)
}

export function linkName(creator: string, offer: string): string {
  return `link ${creator}-${offer.replace('offer ', '')}`
}
