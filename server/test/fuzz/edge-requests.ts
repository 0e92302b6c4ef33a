import { either, fc } from '../testkit/property.ts'
import type { Targets } from './fuzzed-service.ts'
import { badQuery, badSegment, oddHeaders } from './odd-parts.ts'
import type { FuzzRequest } from './requests.ts'

const EDGE_PATHS = [
  ...'/ /store.js /client.tgz /healthz /readyz /metrics /.well-known/security.txt /openapi.json /docs'.split(
    ' ',
  ),
  ...'/account/verify-email /account/reset-password /account/unsubscribe /account/account.js'.split(' '),
  ...'/account/ /docs/pages.css /docs/pages.js /docs/reference.js /docs/swagger-ui.css'.split(' '),
  ...'/docs/ /docs/guides /docs/guides/settings /docs/guides?q=payout'.split(' '),
  ...'/docs/guides/drawings/theme-script.svg /docs/..%2f..%2fpackage.json /trpc /trpc/'.split(' '),
  ...'/favicon.ico /offers/ //offers /OFFERS /./offers /offers/../me /jobs/x/file /admin'.split(' '),
  ...'/webhooks /.env /go /go/'.split(' '),
]

/** Requests beside procedures: probes, pages, redirects, files, and unknown paths. */
export function edgeRequest({ slugs, ids, tokens }: Targets): fc.Arbitrary<FuzzRequest> {
  const path = fc.oneof(
    fc.constantFrom(...EDGE_PATHS),
    fc.constantFrom(...slugs).map((slug) => `/go/${slug}`),
    badSegment.map((text) => `/go/${text}`),
    badSegment.map((text) => `/docs/${text}`),
    badSegment.map((text) => `/docs/guides/${text}`),
    badSegment.map((text) => `/trpc/${text}`),
    fc.constantFrom(...ids).map((id) => `/jobs/${id}/file`),
    badSegment.map((text) => `/jobs/${text}/file`),
    fc.array(badSegment, { maxLength: 4 }).map((parts) => `/${parts.join('/')}`),
  )
  return fc
    .record({
      path,
      query: either([3, fc.constant('')], [1, badQuery]),
      method: either(
        [8, fc.constant('GET')],
        [3, fc.constantFrom(...'HEAD POST PUT DELETE OPTIONS PATCH TRACE PROPFIND'.split(' '))],
      ),
      odd: oddHeaders,
      token: fc.constantFrom(...Object.values(tokens)),
    })
    .map(({ path, query, method, odd, token }) => ({
      about: 'edges',
      method,
      path: (query === '' ? path : `${path}?${query}`).slice(0, 12_000),
      headers: { authorization: token, ...odd },
      body: null,
    }))
}
