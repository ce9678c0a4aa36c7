export type { Shared, SharedNote } from './share.ts'
export { shareModels } from './share-models.ts'
export type { Listening, ModelSharing, SharedModel, SharingOptions, SharingStatus } from './sharing.ts'
export type { HeldBack, Verifying } from './status.ts'
