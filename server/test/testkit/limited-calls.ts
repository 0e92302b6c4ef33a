import { TRPCClientError } from '@trpc/client'
import * as assert from 'uvu/assert'
import type { AppRouter } from '../../http/router.ts'
import type { Answer } from './service-bed.ts'
import type { WebTestbed } from './web.ts'
import { PASSWORD, register } from './web-people.ts'

/* Calls from chosen addresses, for a testbed with TRUST_PROXY=loopback, and what limits make of them. */

export const from = (address: string) => ({ 'x-forwarded-for': address })

export function logIn(bed: WebTestbed, email: string, address: string): Promise<Answer> {
  const body = { email, password: 'not the password' }
  return bed.ask('POST', '/auth/login', { body, headers: from(address) })
}

export function isLimited(answer: Answer, limit: number): void {
  assert.is(answer.status, 429, JSON.stringify(answer.body))
  assert.is(answer.headers.get('content-type'), 'application/problem+json')
  assert.is(answer.body.code, 'rate_limited')
  assert.is(answer.body.status, 429)
  assert.is(answer.body.request_id, answer.headers.get('x-request-id'))
  assert.is(answer.headers.get('ratelimit-limit'), String(limit))
  assert.is(answer.headers.get('ratelimit-remaining'), '0')
  assert.is(answer.headers.get('retry-after'), answer.headers.get('ratelimit-reset'))
  const wait = Number(answer.headers.get('retry-after'))
  assert.ok(wait >= 1 && wait <= 60, String(wait))
}

/** Too many wrong passwords for an account: the RateLimit headers are of the address. */
export function isLocked(answer: Answer): void {
  assert.is(answer.status, 429, JSON.stringify(answer.body))
  assert.is(answer.body.code, 'rate_limited')
  assert.match(
    String(answer.body.detail),
    /^Too many wrong passwords for this account\. Try again in \d+ minutes?\.$/,
  )
  const wait = Number(answer.headers.get('retry-after'))
  assert.ok(wait >= 1 && wait <= 900, String(wait))
}

export async function codesOf(calls: readonly Promise<unknown>[]): Promise<string[]> {
  const outcomes = await Promise.allSettled(calls)
  return outcomes.map((outcome) => {
    if (outcome.status === 'fulfilled') return 'ok'
    assert.instance(outcome.reason, TRPCClientError)
    return (outcome.reason as TRPCClientError<AppRouter>).data?.problem.code ?? 'none'
  })
}

export const OWNER = { email: 'victim@example.pk', password: PASSWORD }

export const registerOwner = (bed: WebTestbed, address: string) =>
  register(bed, 'creator', OWNER.email, from(address))

export const logOwnerIn = (bed: WebTestbed, address: string) =>
  bed.ask('POST', '/auth/login', { body: OWNER, headers: from(address) })

/** Registers a creator from an address, and returns their token. */
export async function creatorAt(bed: WebTestbed, email: string, address: string): Promise<string> {
  return (await register(bed, 'creator', email, from(address))).token
}
