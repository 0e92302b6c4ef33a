import { fc } from '../testkit/property.ts'

interface Parts<T> {
  items: fc.Value<T>[]
}

/**
 * Lists of exactly `length`, that shrink as a whole: leaving out halves, quarters and so on down to single items, then making single
 * items simpler. fast-check's own lists keep their first items while they shrink, so that what stands between two steps which
 * matter stays in the story.
 */
class LongList<T> extends fc.Arbitrary<T[]> {
  readonly #item: fc.Arbitrary<T>
  readonly #length: number

  constructor(item: fc.Arbitrary<T>, length: number) {
    super()
    this.#item = item
    this.#length = length
  }

  override generate(random: fc.Random, bias: number | undefined): fc.Value<T[]> {
    return listOf(Array.from({ length: this.#length }, () => this.#item.generate(random, bias)))
  }

  override canShrinkWithoutContext(_value: unknown): _value is T[] {
    return false
  }

  override shrink(_value: T[], context: unknown): fc.Stream<fc.Value<T[]>> {
    return fc.stream(this.#simpler((context as Parts<T>).items))
  }

  *#simpler(items: fc.Value<T>[]): IterableIterator<fc.Value<T[]>> {
    for (let size = items.length; size >= 1; size = Math.floor(size / 2)) {
      for (let at = 0; at < items.length; at += size) yield listOf(items.toSpliced(at, size))
    }
    for (const [at, item] of items.entries()) {
      for (const simpler of this.#item.shrink(item.value, item.context)) yield listOf(items.with(at, simpler))
    }
  }
}

function listOf<T>(items: fc.Value<T>[]): fc.Value<T[]> {
  return new fc.Value(
    items.map((item) => item.value),
    { items } satisfies Parts<T>,
  )
}

export function longList<T>(item: fc.Arbitrary<T>, length: number): fc.Arbitrary<T[]> {
  return new LongList(item, length)
}
