export { type Address, address, type ParsedAddress, parseAddress } from "./address.js";
export type { ConnectionState, ConnectOptions } from "./client/connection.js";
export { connect, type RemoteNode } from "./client/node.js";
export { type StartedNode, startNode, type StartOptions } from "./client/start.js";
export type { RemoteTopic } from "./client/topic.js";
export type { Clock } from "./clock.js";
export { type ErrorCode, type ErrorData, MessageError, parseError } from "./error.js";
export type { Percentiles } from "./histogram.js";
export {
  createErrorResponse,
  createMessage,
  createResponse,
  generateCorrelationId,
  generateMessageId,
  type Message,
  type MessageInit,
  parseMessage,
  type Pattern,
} from "./message.js";
export type {
  Actor,
  ActorContext,
  ActorInfo,
  ActorRef,
  AnyProtocol,
  AskOptions,
  Call,
  DeadLetter,
  Entry,
  Exit,
  Items,
  LocalRef,
  Make,
  Overflow,
  Protocol,
  SpawnOptions,
  StreamOptions,
  TellOptions,
} from "./protocol.js";
export type { MessageHandler, Router } from "./router.js";
export { ActorSystem, type SystemOptions, type SystemStats } from "./system.js";
export type { SubscribeOptions, Topic, TopicReader } from "./topic.js";
export type { ActorTrouble, ListenerTrouble, Trouble } from "./trouble.js";
