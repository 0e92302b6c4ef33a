/**
 * Bytes of a statement's last parameter that lie in several buffers: those of a batch of bodies, half a megabyte. Where they would be
 * copied into one they take so much memory outside the heap that the collector goes through all of the heap again and again.
 */
export class BytesInParts {
  readonly parts: readonly Buffer[]

  constructor(parts: readonly Buffer[]) {
    this.parts = parts
  }

  /** The driver's own way to a parameter: what it would send if it did not let us send the parts as they are. */
  toPostgres(): Buffer {
    return Buffer.concat(this.parts)
  }
}
