/** A value of the contract as whoever sends it has it: nothing changes it on the way. */
export type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T
