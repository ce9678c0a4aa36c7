// What the daemon and the catalog are made of, for each other at the same version: no promise to anybody else.

export { hubFailure } from './hub/errors.ts'
export { HubDocumentReader } from './hub/hub-documents.ts'
export { GIT_NAME, gitNameIn } from './hub/listed-bytes.ts'
export { ModelHub, type ModelHubDeps } from './hub/model-hub.ts'
export { type HubAccess, OwnersHub, type OwnersHubOptions } from './hub/owners-hub.ts'
export type { HubPlan } from './hub/plan.ts'
export { hubProvenance } from './hub/provenance.ts'
export { hubTarget } from './hub/target.ts'
export type { HubUpstream } from './hub/upstream.ts'
