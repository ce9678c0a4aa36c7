import { ROUTES } from '@svc/client/protocol'
import { ConfigError, DaemonError } from '../../errors.ts'
import { defineRoute } from '../route.ts'

/** The owner's decision on sharing their own models. */
export interface SeedLocalDeps {
  readonly local: {
    /** @throws ConfigError */
    decideSeedLocal(value: boolean): Promise<{ readonly seedLocal: boolean; readonly file?: string }>
  }
}

export const seedLocalRoute = ({ local }: SeedLocalDeps) =>
  defineRoute(ROUTES.seedLocal, async ({ body }) => {
    try {
      return await local.decideSeedLocal(body.seedLocal)
    } catch (cause) {
      if (!(cause instanceof ConfigError)) throw cause
      throw new DaemonError('E_BAD_REQUEST', cause.message, { cause })
    }
  })
