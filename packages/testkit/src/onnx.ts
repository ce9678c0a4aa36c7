// A model in ONNX, as a runtime loads it: protobuf by hand, since a model of two nodes needs no library.

const varint = (value: number): number[] => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)])
const number = (field: number, value: number): Buffer => Buffer.from([...varint(field << 3), ...varint(value)])
function bytes(field: number, ...parts: readonly (Buffer | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)))
  return Buffer.concat([Buffer.from([...varint((field << 3) | 2), ...varint(content.length)]), content])
}

const FLOAT = 1
const INT64 = 7

function value(name: string, type: number, ...dimensions: readonly (string | number)[]): Buffer[] {
  const shape = dimensions.map((each) => bytes(1, typeof each === 'number' ? number(1, each) : bytes(2, each)))
  return [bytes(1, name), bytes(2, bytes(1, number(1, type), bytes(2, ...shape)))]
}
const node = (operator: string, from: string, to: string, ...attribute: readonly Buffer[]): Buffer =>
  bytes(1, bytes(1, from), bytes(2, to), bytes(4, operator), bytes(5, ...attribute))

/** An encoder whose `last_hidden_state` is each token's number, as one float. */
export function makeOnnxEncoder(): Buffer {
  const graph = [
    node('Cast', 'input_ids', 'floats', bytes(1, 'to'), number(3, FLOAT), number(20, 2)),
    node('Unsqueeze', 'floats', 'last_hidden_state', bytes(1, 'axes'), number(8, 2), number(20, 7)),
    bytes(2, 'encoder'),
    bytes(11, ...value('input_ids', INT64, 'batch', 'tokens')),
    bytes(11, ...value('attention_mask', INT64, 'batch', 'tokens')),
    bytes(12, ...value('last_hidden_state', FLOAT, 'batch', 'tokens', 1))
  ]
  return Buffer.concat([number(1, 7), bytes(7, ...graph), bytes(8, bytes(1, ''), number(2, 11))])
}
