import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { Refusal } from '../platform/api/refusal.ts'
import type { HttpApp } from './context.ts'
import { etagOf, type Guard, isCurrent } from './pages.ts'

/** The client's tarball of this version: part of the published package; in a checkout `npm run build` makes it. */
export const CLIENT_PACKAGE = join(dirname(findPackageJSON(import.meta.url) ?? ''), 'dist', 'client.tgz')

const NOT_BUILT =
  'This service runs without the tarball of its client. In a checkout, "npm ci && npm run build" makes it; published packages have it.'

/**
 * `GET /client.tgz`: the client package that fits this server, for `npm install https://HOST/client.tgz`. Clients ask each time whether
 * theirs is still current, since the address is that of every version.
 */
export function registerClientPackage(
  server: FastifyInstance,
  { clientPackage = CLIENT_PACKAGE }: Pick<HttpApp, 'clientPackage'>,
  guard: Guard,
): void {
  let tarball: Promise<Buffer> | undefined
  server.get('/client.tgz', { onRequest: guard }, async (request, reply) => {
    if (tarball === undefined && !existsSync(clientPackage)) throw new Refusal('not_found', NOT_BUILT)
    tarball ??= readFile(clientPackage)
    const bytes = await tarball
    reply.header('cache-control', 'public, no-cache')
    if (isCurrent(request, reply, etagOf(bytes))) return reply.code(304).send()
    return reply.type('application/gzip').send(bytes)
  })
}
