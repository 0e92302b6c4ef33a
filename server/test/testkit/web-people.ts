import * as assert from 'uvu/assert'
import type { Answer } from './service-bed.ts'
import type { WebTestbed } from './web.ts'

export const PASSWORD = 'a long passphrase'

let counter = 0
export const newEmail = () => `person${counter++}@example.pk`

/** Opens an account over HTTP. */
export async function register(
  bed: WebTestbed,
  role: 'merchant' | 'creator' = 'creator',
  email = newEmail(),
  headers: Record<string, string> = {},
) {
  const body = { email, password: PASSWORD, role, display_name: 'Ayesha Khan' }
  const answer = await bed.ask('POST', '/auth/register', { body, headers })
  assert.is(answer.status, 201, JSON.stringify(answer.body))
  const user = answer.body.user as Record<string, unknown>
  return { email, token: String(answer.body.token), user, id: String(user.id), answer }
}

/** Logs in over HTTP, with the password of `register` unless `more` has another. */
export const logIn = (
  bed: WebTestbed,
  email: string,
  more: { password?: string; code?: string | undefined } = {},
  headers: Record<string, string> = {},
) => bed.ask('POST', '/auth/login', { body: { email, password: PASSWORD, ...more }, headers })

/** Asserts a refusal; of these fields, if given. */
export function isRefused(answer: Answer, status: number, code: string, ...paths: string[]): void {
  assert.equal([answer.status, answer.body.code], [status, code], JSON.stringify(answer.body))
  const issues = (answer.body.issues ?? []) as { path: string }[]
  if (paths.length > 0) assert.equal(issues.map((issue) => issue.path).sort(), paths.sort())
}
