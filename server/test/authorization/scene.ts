import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { suite } from 'uvu'
import type { Role } from '../../../shared/schemas/common.ts'
import { createClickRecorder } from '../../clicks/clicks.service.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import type { SessionActor } from '../../platform/api/procedure.ts'
import type { Platform } from '../../platform/platform.ts'
import type { TestDialect } from '../testkit/databases.ts'
import { openMarketplace, type Shop } from '../testkit/marketplace.ts'
import { addUser, logIn } from '../testkit/people.ts'
import { proofDialects } from '../testkit/proof-size.ts'
import { serverOver } from '../testkit/web.ts'

/** A merchant with a store, a creator who works for them, and an admin: those who belong together. */
export interface Tenant {
  shop: Shop
  merchant: SessionActor
  creator: SessionActor
  admin: SessionActor
  /** Of the creator, to a live offer of the merchant. */
  link: LinkRecord
}

export type Scene = Awaited<ReturnType<typeof openScene>>

/** A marketplace, and the real server over it, with the routes that it serves. */
export async function openScene(dialect: TestDialect) {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-scene-'))
  const market = await openMarketplace(dialect, {
    DATA_DIR: folder,
    METRICS_TOKEN: 'metrics-token-of-the-operator',
    SECURITY_CONTACT: 'mailto:security@example.pk',
  })
  const { platform } = market
  const clicks = createClickRecorder(platform)
  const routes: { method: string; url: string }[] = []
  const listen = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const name of [method].flat()) routes.push({ method: name, url })
    })
  }
  subscribe('fastify.initialization', listen)
  const server = await serverOver(platform, { clicks })
  unsubscribe('fastify.initialization', listen)
  const base = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    ...{ market, platform, base, routes },
    async close() {
      await server.close()
      await clicks.idle()
      await market.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Suites over one scene with one tenant, as `marketSuites`. */
export function sceneSuites<Context>(name: string) {
  return proofDialects().map((dialect) => {
    const it = suite<{ scene: Scene; tenant: Tenant } & Context>(`${name} on ${dialect}`)
    it.before(async (context) => {
      context.scene = await openScene(dialect)
      context.tenant = await addTenant(context.scene, 'A')
    })
    it.after(({ scene }) => scene.close())
    return { it, dialect }
  })
}

export async function addTenant({ market, platform }: Scene, name: string): Promise<Tenant> {
  const shop = await market.addShop(`${name} merchant`)
  const creator = await market.addCreator(`${name} creator`)
  const admin = await addUser(platform, 'admin', `${name} admin`)
  const link = await market.addLink(shop, creator, { title: `Live offer of ${name}` })
  return { shop, merchant: shop.actor, creator, admin, link }
}

export function actorOf(tenant: Tenant, role: Role): SessionActor {
  return { merchant: tenant.merchant, creator: tenant.creator, admin: tenant.admin }[role]
}

/** Opens a session for a user and answers its `Authorization` header. */
export async function authorize(platform: Platform, userId: string, lifetimeMs = 3_600_000) {
  const actor: SessionActor = { userId, role: 'merchant', sessionId: platform.ids.next() }
  const token = await logIn(platform, actor, lifetimeMs)
  return { authorization: `Bearer ${token}`, sessionId: actor.sessionId }
}
