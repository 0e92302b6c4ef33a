import * as assert from 'uvu/assert'

type With<Key extends PropertyKey> = readonly { readonly [K in Key]?: unknown }[] | undefined

/** One value of each item. */
export function pluck<Key extends PropertyKey>(items: With<Key>, key: Key): unknown[] {
  return (items ?? []).map((item) => item[key])
}

/** Several values of each item. */
export function pluckAll<Key extends PropertyKey>(items: With<Key>, ...keys: Key[]): unknown[][] {
  return (items ?? []).map((item) => keys.map((key) => item[key]))
}

/** Asserts what `of` makes of each item. */
export function assertMapped<Item>(
  items: readonly Item[] | undefined,
  of: (item: Item, index: number) => unknown,
  wanted: readonly unknown[],
  message?: string,
): void {
  assert.equal(items?.map(of), wanted, message)
}

/** Asserts that no item is as `isWrong` says; fails with those that are. */
export function assertNone<Item>(
  items: readonly Item[] | undefined,
  isWrong: (item: Item) => unknown,
  message?: string,
): void {
  assert.equal(items?.filter(isWrong), [], message)
}
