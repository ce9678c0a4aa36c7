/**
 * A value that the process has once. This package is bundled into each of its users, so a value of its modules would exist once for
 * each of them.
 */
export function processWide<T extends object>(name: string, make: () => T): T {
  const values = globalThis as unknown as Record<symbol, T | undefined>
  return (values[Symbol.for(`svc.${name}`)] ??= make())
}
