import { DAY } from './calendar.ts'
import {
  type Click,
  known,
  type Link,
  type Offer,
  type Person,
  raiseFlag,
  type State,
  type Terms,
} from './state.ts'

/** People, stores, offers, links and clicks: who may earn by what. */

export function addPerson(state: State, person: Pick<Person, 'name' | 'role' | 'email'>): void {
  state.people.set(person.name, { ...person, suspended: false, destinations: [] })
}

export function setSuspended(state: State, name: string, suspended: boolean): void {
  known(state.people, name).suspended = suspended
}

/** The first account counts at once; a replacement a day later, with a notification. */
export function addDestination(state: State, creator: string, now: number): void {
  const { destinations } = known(state.people, creator)
  const first = destinations.length === 0
  destinations.push({ givenAt: now, countsFrom: first ? now : now + DAY })
  if (!first) raiseFlag(state, 'payout_destination_replaced', creator)
}

/** From when the account that payouts go to now has counted; `null` without one. */
export function destinationSince(state: State, creator: string, now: number): number | null {
  const { destinations } = known(state.people, creator)
  const inForce = destinations.filter((one, index) => {
    const replacedAt = destinations[index + 1]?.givenAt
    // Replaced before it counted: it never does.
    return one.countsFrom <= now && (replacedAt === undefined || one.countsFrom <= replacedAt)
  })
  return inForce.at(-1)?.countsFrom ?? null
}

export function addStore(state: State, name: string, merchant: string, secret: string): void {
  state.stores.set(name, { name, merchant, inUse: true, secrets: [{ secret, until: null }] })
}

/** The former secret goes on for 24 hours; the one in force already changes nothing. */
export function rotateSecret(state: State, name: string, secret: string, now: number): void {
  const store = known(state.stores, name)
  if (!store.inUse || store.secrets.at(-1)?.secret === secret) return
  for (const former of store.secrets) former.until ??= now + DAY
  store.secrets.push({ secret, until: null })
}

/** A merchant's last store takes the live offers with it: they are paused. */
export function removeStore(state: State, name: string, now: number): void {
  const store = known(state.stores, name)
  store.inUse = false
  store.secrets = []
  if (hasStore(state, store.merchant)) return
  for (const offer of state.offers.values())
    if (offer.merchant === store.merchant && offer.status === 'live') moveTo(offer, 'paused', now)
}

function hasStore(state: State, merchant: string): boolean {
  return [...state.stores.values()].some((store) => store.merchant === merchant && store.inUse)
}

/** Its merchant connects a removed store again: it is the same store. */
export function connectAgain(state: State, name: string, secret: string): void {
  const store = known(state.stores, name)
  store.inUse = true
  store.secrets = [{ secret, until: null }]
}

export function addLiveOffer(state: State, name: string, merchant: string, terms: Terms, now: number): void {
  const statuses: Offer['statuses'] = [{ status: 'live', since: now }]
  state.offers.set(name, { name, merchant, status: 'live', statuses, terms })
}

function moveTo(offer: Offer, status: Offer['status'], now: number): void {
  offer.status = status
  offer.statuses.push({ status, since: now })
}

/** For later approvals only; an ended offer stays as it is. */
export function changeOffer(state: State, name: string, terms: Partial<Terms>): boolean {
  const offer = known(state.offers, name)
  if (offer.status === 'ended') return false
  offer.terms = { ...offer.terms, ...terms }
  return true
}

const MOVES: Record<Offer['status'], Offer['status'][]> = {
  draft: ['live'],
  live: ['paused', 'ended'],
  paused: ['live', 'ended'],
  ended: [],
}

/** Whether the offer has the status then. Going live takes a store in use. */
export function setOfferStatus(state: State, name: string, to: Offer['status'], now: number): boolean {
  const offer = known(state.offers, name)
  if (offer.status === to) return true
  if (!MOVES[offer.status].includes(to) || (to === 'live' && !hasStore(state, offer.merchant))) return false
  moveTo(offer, to, now)
  return true
}

/** An application that its merchant approves: the link keeps the terms of this moment. */
export function approve(state: State, name: string, offerName: string, creator: string): Link | null {
  const offer = known(state.offers, offerName)
  if (offer.status !== 'live' || known(state.people, offer.merchant).suspended) return null
  const terms = { ...offer.terms }
  const link: Link = { name, offer: offerName, merchant: offer.merchant, creator, terms, codes: [] }
  state.links.set(name, link)
  return link
}

/** A link's new coupon code, or none. `false`: another link of the merchant has it. */
export function setCoupon(state: State, link: Link, code: string | null, now: number): boolean {
  const present = link.codes.find(({ until }) => until === null)
  if ((present?.code ?? null) === code) return true
  const others = [...state.links.values()].filter(({ merchant }) => merchant === link.merchant)
  if (others.some(({ codes }) => codes.some((one) => one.code === code && one.until === null))) return false
  if (present) present.until = now
  if (code !== null) link.codes.push({ code, from: now, until: null })
  return true
}

/** What a visit of the link would be now. */
export function visitOf(state: State, link: Link): 'tracked' | 'untracked' | 'gone' {
  if (known(state.people, link.merchant).suspended) return 'gone'
  const earns =
    known(state.offers, link.offer).status === 'live' && !known(state.people, link.creator).suspended
  return earns ? 'tracked' : 'untracked'
}

export function addClick(state: State, click: Click): void {
  state.clicks.set(click.id, click)
}
