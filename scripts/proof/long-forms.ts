/** One proof in its long form: the same test files as in `npm test`, asked to do more by their environment. */
export interface LongForm {
  name: string
  /** What it promises, for the table. */
  promise: string
  /** Test files whose path contains one of these. */
  files: string[]
  /** Settings that are counts: multiplied by `--scale`, at least 1. */
  counts?: Record<string, number>
  /** Settings that stay as they are. */
  settings?: Record<string, string>
}

export const LONG_FORMS: readonly LongForm[] = [
  {
    name: 'simulated weeks',
    promise: 'the books equal those of an independent model, after every story',
    files: ['server/proof/simulation/'],
    counts: { SIMULATED_WEEKS: 10_000 },
  },
  {
    name: 'kill',
    promise: 'kill -9 at named points and at random: nothing acknowledged is lost, nothing is doubled',
    files: ['server/proof/kill/'],
    counts: { KILLS_PER_POINT: 25, RANDOM_KILLS: 2000 },
  },
  {
    name: 'race',
    promise: 'two processes race for one thing: one effect, no error',
    files: ['server/proof/race/'],
    counts: { RACES: 10_000 },
  },
  {
    name: 'processor faults',
    promise: 'whatever the processor answers: at most one success, the same key, and the truth in the end',
    files: ['server/proof/faults/'],
    counts: { FAULT_SEQUENCES: 10_000 },
  },
  {
    name: 'stall',
    promise: 'a stalled or cut database: in time or 503 within 2 s, nothing lost around COMMIT',
    files: ['server/proof/stall/', 'server/proof/database-down', 'server/proof/database-locked'],
    settings: { STALLS: '1,5,30', ALL_COMMIT_CUTS: '1' },
  },
  {
    name: 'clock',
    promise: 'clocks that jump, month ends, 29 February, midnight in Karachi',
    files: ['server/proof/clock', 'server/billing/billing-period.rule'],
  },
  {
    name: 'invariants',
    promise: 'each invariant finds the row that was tampered with behind its back',
    files: ['server/proof/invariants/', 'server/migrations/guards'],
  },
  {
    name: 'adversaries',
    promise: 'evasions of merchants, frauds of creators and visitors: each rejected, refused or flagged',
    files: ['server/proof/adversaries/'],
  },
  {
    name: 'fuzz',
    promise: 'no answer of 500 or above, no hang, whatever is sent or typed',
    files: ['server/proof/fuzz/'],
    counts: { FUZZ_REQUESTS: 1_000_000, FUZZ_COMMANDS: 20_000 },
  },
  {
    name: 'hostile bodies',
    promise:
      'signed bodies of 2 MiB in any shape: no stall over 50 ms; a pile of 300 drains in a heap of 512 MB',
    files: ['server/proof/hostile/'],
    counts: { HOSTILE_BODIES: 2000 },
    settings: { HOSTILE_PILE: '300', HOSTILE_PILE_HEAP: '512' },
  },
  {
    name: 'authorization',
    promise: 'every route for exactly the right caller, every id with a stranger',
    files: ['server/proof/authorization/'],
  },
  {
    name: 'migrations',
    promise: 'each migration, on databases with rows in every table',
    files: ['server/migrations/migrations'],
  },
]
