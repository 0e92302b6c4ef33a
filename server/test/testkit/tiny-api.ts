import fastify, { type FastifyInstance } from 'fastify'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { sendProblem } from '../../http/errors.ts'
import { registerRest } from '../../http/rest.ts'
import { registerTrpc } from '../../http/trpc.ts'
import { answerUnknownRoutes, collectRoutes } from '../../http/unknown-routes.ts'
import { procedure, publicProcedure, router } from '../../platform/api/procedure.ts'
import { Refusal } from '../../platform/api/refusal.ts'
import { type Answer, call } from './service-bed.ts'
import { openTestbed } from './testbed.ts'

/** Procedures of every shape that the adapters know, and none of the service's own. */
const thingsRouter = router({
  echo: publicProcedure({ rest: { method: 'GET', path: '/things/:name' }, summary: 'Echo' })
    .input(
      z.strictObject({
        name: z.string(),
        count: z.int().max(100).optional(),
        ratio: z.number().nullable().optional(),
        flag: z.boolean().optional(),
        tags: z.array(z.int()).optional(),
        kind: z.enum(['a', 'b']).optional(),
      }),
    )
    .output(z.object({ got: z.record(z.string(), z.unknown()) }))
    .query(({ input }) => ({ got: input })),
  make: publicProcedure({
    rest: { method: 'POST', path: '/things/:name', status: 201 },
    summary: 'Make',
    errors: ['conflict'],
  })
    .input(z.strictObject({ name: z.string(), count: z.int(), flag: z.boolean().optional() }))
    .output(z.object({ name: z.string(), count: z.number() }))
    .mutation(({ input }) => {
      if (input.count === 13) throw new Refusal('conflict', 'Not thirteen.')
      if (input.count === 14) throw new Refusal('unavailable', 'Later.', { retryAfter: 7 })
      if (input.count === 15) throw new Error('secret: the password is hunter2')
      if (input.count === 16) return { name: 'x', count: 'not a number', extra: 1 } as never
      return { ...input, extra: 'is not sent' }
    }),
  clear: publicProcedure({ rest: { method: 'DELETE', path: '/things/:name', status: 204 }, summary: 'Clear' })
    .input(z.strictObject({ name: z.string() }))
    .output(z.void())
    .mutation(() => {}),
  poke: publicProcedure({ rest: { method: 'POST', path: '/poke', status: 204 }, summary: 'Poke' })
    .input(z.strictObject({}).prefault({}))
    .output(z.void())
    .mutation(() => {}),
  guarded: procedure(['merchant'], { rest: { method: 'GET', path: '/guarded' }, summary: 'Guarded' })
    .input(z.strictObject({ n: z.int() }))
    .output(z.object({}))
    .query(() => ({})),
})
export const tinyRouter = router({ things: thingsRouter })

export type TinyApi = Awaited<ReturnType<typeof openTinyApi>>

/** A server with the tiny router behind both adapters. */
export async function openTinyApi() {
  const bed = await openTestbed('sqlite')
  const { platform } = bed
  const server: FastifyInstance = fastify({
    bodyLimit: 1024,
    genReqId: () => platform.ids.next(),
    routerOptions: { maxParamLength: 1000 },
    frameworkErrors: (error, request, reply) => void sendProblem(platform, request, reply, error),
  })
  server.setErrorHandler((error, request, reply) => sendProblem(platform, request, reply, error))
  answerUnknownRoutes(server, platform, collectRoutes(server))
  registerRest(server, platform, tinyRouter)
  registerTrpc(server, platform, tinyRouter)
  const base = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    ...bed,
    base,
    async ask(method: string, path: string, body?: unknown, type = 'application/json') {
      const raw = typeof body === 'string' ? body : JSON.stringify(body)
      const request = body === undefined ? {} : { raw, headers: { 'content-type': type } }
      const answer = await call(base, method, path, request)
      return { ...answer, body: answer.body ?? {} }
    },
    async close() {
      await server.close()
      await bed.close()
    },
  }
}

export function isProblem(answer: Answer, status: number, code: string): void {
  assert.is(answer.body.code, code, JSON.stringify(answer.body))
  assert.is(answer.status, status)
  assert.is(answer.body.status, status)
  assert.is(answer.headers.get('content-type'), 'application/problem+json')
  assert.match(String(answer.body.request_id), /^[0-9a-f-]{36}$/)
  assert.is(answer.body.type, 'about:blank')
}
