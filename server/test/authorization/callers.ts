import { randomBytes } from 'node:crypto'
import type { Role } from '../../../shared/schemas/common.ts'
import type { SessionActor } from '../../platform/api/procedure.ts'
import { logout } from '../../users/sessions.service.ts'
import { addApiKey, addUser, setSuspended } from '../testkit/people.ts'
import type { Caller } from './matrix.ts'
import { actorOf, authorize, type Scene, type Tenant } from './scene.ts'

/** The credentials that a caller presents, and the account it is or pretends to be. */
export interface Presented {
  authorization: string | null
  actor: SessionActor
}

export function openCallers({ platform }: Scene, tenant: Tenant) {
  const kept = new Map<string, Presented>()
  let turn = 0

  /** The suspension itself would end the session: here a session has stayed behind, and must not help. */
  async function suspended(role: Role): Promise<Presented> {
    const actor = await addUser(platform, role, 'suspended')
    const { authorization } = await authorize(platform, actor.userId)
    await setSuspended(platform, actor.userId, true)
    return { authorization, actor }
  }

  /** Admins have no keys: a merchant's stands in. */
  async function withKey(role: Role, scope: 'read' | 'write'): Promise<Presented> {
    const actor = actorOf(tenant, role === 'admin' ? 'merchant' : role)
    const { key } = await addApiKey(platform, actor.userId, scope)
    return { authorization: `Bearer ${key}`, actor }
  }

  /** The same one each time, since an account may have only so many keys. */
  async function once(name: string, make: () => Promise<Presented>): Promise<Presented> {
    const presented = kept.get(name) ?? (await make())
    kept.set(name, presented)
    return presented
  }

  /** `roles` are those that the route is for: invalid tokens belonged to one of them. */
  return async function present(
    caller: Caller,
    [role = 'creator']: readonly Role[] = [],
  ): Promise<Presented> {
    const actor = actorOf(tenant, role)
    switch (caller) {
      case 'anonymous':
        return { authorization: null, actor }
      case 'garbage':
        return { authorization: garbage(turn++), actor }
      case 'suspended':
        return once(`suspended ${role}`, () => suspended(role))
      case 'readKey':
      case 'writeKey':
        return once(`${caller} ${role}`, () => withKey(role, caller === 'readKey' ? 'read' : 'write'))
      case 'expired':
        return { ...(await authorize(platform, actor.userId, 0)), actor }
      case 'ended': {
        const { authorization, sessionId } = await authorize(platform, actor.userId)
        await logout(platform, { ...actor, sessionId })
        return { authorization, actor }
      }
      default: {
        const self = actorOf(tenant, caller)
        const { authorization, sessionId } = await authorize(platform, self.userId)
        return { authorization, actor: { ...self, sessionId } }
      }
    }
  }
}

/** In turn: a token that was never issued, and headers without a token. */
function garbage(turn: number): string {
  const token = randomBytes(32).toString('base64url')
  const headers = [
    ...[`Bearer ${token}`, 'Bearer', `Bearer ${token} ${token}`, 'Bearer null', 'Bearer 0'],
    ...[`Basic ${Buffer.from('admin:admin').toString('base64')}`, `Bearer ${token}'--`],
    `Bearer ${'A'.repeat(4000)}`,
  ]
  return headers[turn % headers.length] ?? ''
}
