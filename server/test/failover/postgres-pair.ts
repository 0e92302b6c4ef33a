import { eventually } from '../testkit/eventually.ts'
import { type PostgresCluster, type PostgresNode, startCluster } from '../testkit/standby.ts'

/** The fixed ports of both servers are what a service is given; what is acknowledged is on disk. */
const SETTINGS = ['fsync=on', 'io_method=sync', 'shared_buffers=32MB']

/** A primary and a synchronous standby, which change places over and over on the same two ports. */
export class PostgresPair {
  readonly #cluster: PostgresCluster
  readonly #ports: readonly [number, number]
  #copies = 1
  primary: PostgresNode
  standby: PostgresNode

  static async open(): Promise<PostgresPair> {
    const cluster = await startCluster(SETTINGS)
    try {
      const pair = new PostgresPair(cluster, await cluster.primary.addStandby('copy1'))
      await pair.#synchronize()
      return pair
    } catch (error) {
      await cluster.close()
      throw error
    }
  }

  private constructor(cluster: PostgresCluster, standby: PostgresNode) {
    this.#cluster = cluster
    this.primary = cluster.primary
    this.standby = standby
    this.#ports = [this.primary.port, standby.port]
  }

  /** Makes the server that was stopped a new, synchronous standby of the primary, on its port. One that streams stays. */
  async attachStandby(): Promise<void> {
    const rows = await this.primary.query("select 1 from pg_stat_replication where sync_state = 'sync'")
    if (rows.length > 0) return
    const port = this.#ports.find((one) => one !== this.primary.port)
    this.#copies += 1
    this.standby = await this.primary.addStandby(`copy${this.#copies}`, port)
    await this.#synchronize()
  }

  /** The standby takes over, waits for no standby itself, and takes writes when this resolves. The former primary must have ended. */
  async failOver(): Promise<void> {
    await this.standby.configure({ synchronous_standby_names: '' })
    await this.standby.promote()
    const former = this.primary
    this.primary = this.standby
    this.standby = former
  }

  /** From then on a commit returns once both servers have it on disk. */
  async #synchronize(): Promise<void> {
    await this.#untilReplicating('state', 'streaming')
    await this.primary.configure({ synchronous_standby_names: '*' })
    await this.#untilReplicating('sync_state', 'sync')
  }

  async #untilReplicating(column: 'state' | 'sync_state', value: string): Promise<void> {
    await eventually(
      () => this.primary.query('select state, sync_state from pg_stat_replication'),
      (rows) => rows.some((row) => row[column] === value),
    )
  }

  close(): Promise<void> {
    return this.#cluster.close()
  }
}
