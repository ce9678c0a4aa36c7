import { type FilePort, type FilePortModule, nodeFilePort } from '@svc/internal-files'

let held: Promise<void> | undefined

/** A disk on which syncs of part files last until they are let go, perhaps with an error. */
export function heldSyncs(): {
  readonly filePort: FilePortModule
  hold(): void
  letGo(error?: Error): void
} {
  let end: PromiseWithResolvers<void> | undefined
  return {
    filePort: { module: new URL('./held-syncs.ts', import.meta.url).href },
    hold: () => {
      end = Promise.withResolvers()
      end.promise.catch(() => undefined)
      held = end.promise
    },
    letGo: (error) => {
      if (error === undefined) end?.resolve()
      else end?.reject(error)
      held = undefined
    }
  }
}

export default (): FilePort => ({
  ...nodeFilePort,
  fdatasync: async (fd) => {
    await held
    await nodeFilePort.fdatasync(fd)
  }
})
