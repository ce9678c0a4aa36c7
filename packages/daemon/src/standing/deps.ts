import type { Library } from '@svc/library/parts'
import type { StandingViewConfig } from '../config/standing.ts'

/** What standing views need of the store and the configuration. */
export interface StandingDeps
  extends Pick<Library, 'store' | 'clock' | 'log' | 'repos' | 'documents' | 'artifacts' | 'views'> {
  readonly config: {
    /** Where additions are saved; undefined: nowhere. */
    readonly file?: string | undefined
    readonly views: readonly StandingViewConfig[]
  }
}
