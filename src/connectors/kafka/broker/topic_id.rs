//! The id of a topic: unique, also among topics created again under the same name (KIP-516; brokers have ids
//! since version 2.8).
//!
//! librdkafka can look it up, but its Rust wrapper cannot. So this file, and no other, calls the C functions.

#![expect(unsafe_code, reason = "the Rust wrapper has no function for topic ids")]

use std::ffi::{CStr, CString};
use std::ptr::{self, NonNull};
use std::time::Duration;

use rdkafka::client::Client;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientContext, bindings as library};

/// How much longer than the timeout of the request its answer is waited for.
const MARGIN: Duration = Duration::from_secs(1);

/// An object of the library, destroyed on drop.
struct LibraryObject<T> {
    pointer: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> LibraryObject<T> {
    /// `None` if the pointer is null. `destroy` must be the library's function for objects of this type.
    fn new(pointer: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        NonNull::new(pointer).map(|pointer| Self { pointer, destroy })
    }

    fn get(&self) -> *mut T {
        self.pointer.as_ptr()
    }
}

impl<T> Drop for LibraryObject<T> {
    fn drop(&mut self) {
        // SAFETY: the library created the object, this is its only owner, and `destroy` is the function for
        // its type.
        unsafe { (self.destroy)(self.get()) }
    }
}

/// The id of a topic, in the notation of Kafka's own tools; `None` if the broker has no ids.
///
/// # Errors
/// Any error of the broker, including an unknown topic; a timeout.
pub(super) fn topic_id<C: ClientContext>(
    client: &Client<C>,
    topic: &str,
    timeout: Duration,
) -> Result<Option<String>, RDKafkaErrorCode> {
    let event = describe(client, topic, timeout)?;
    // SAFETY: the event is valid; the result of another kind of event is null.
    let result = unsafe { library::rd_kafka_event_DescribeTopics_result(event.get()) };
    if result.is_null() {
        return Err(RDKafkaErrorCode::Fail);
    }
    let mut count = 0;
    // SAFETY: the result belongs to the event, which is valid.
    let described = unsafe { library::rd_kafka_DescribeTopics_result_topics(result, &raw mut count) };
    if described.is_null() || count == 0 {
        return Err(RDKafkaErrorCode::Fail);
    }
    // SAFETY: there is at least one, and it belongs to the event.
    let described = unsafe { *described };
    // SAFETY: the description belongs to the event; its error may be null.
    let error = unsafe { library::rd_kafka_TopicDescription_error(described) };
    // SAFETY: the library accepts null as no error.
    known(unsafe { library::rd_kafka_error_code(error) })?;
    // SAFETY: the description belongs to the event.
    let id = unsafe { library::rd_kafka_TopicDescription_topic_id(described) };
    if id.is_null() {
        return Ok(None);
    }
    // SAFETY: the id belongs to the description.
    let most = unsafe { library::rd_kafka_Uuid_most_significant_bits(id) };
    // SAFETY: the same.
    let least = unsafe { library::rd_kafka_Uuid_least_significant_bits(id) };
    if (most, least) == (0, 0) {
        return Ok(None);
    }
    // SAFETY: the same; the text is stored in the id.
    let text = unsafe { library::rd_kafka_Uuid_base64str(id) };
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the text ends with a zero byte, and is valid as long as the event.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(Some(text.to_string_lossy().into_owned()))
}

/// Asks the broker to describe a topic, and waits for the answer: an event without an error of its own.
fn describe<C: ClientContext>(
    client: &Client<C>,
    topic: &str,
    timeout: Duration,
) -> Result<LibraryObject<library::rd_kafka_event_t>, RDKafkaErrorCode> {
    let name = CString::new(topic).map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
    let milliseconds = |time: Duration| i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    let none = || RDKafkaErrorCode::Fail;
    let client = client.native_ptr();
    // SAFETY: the client is borrowed, and valid for the whole function.
    let queue = unsafe { library::rd_kafka_queue_new(client) };
    let queue = LibraryObject::new(queue, library::rd_kafka_queue_destroy).ok_or_else(none)?;
    let mut names = [name.as_ptr()];
    // SAFETY: one name, which ends with a zero byte; the library copies it.
    let topics = unsafe { library::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), names.len()) };
    let topics = LibraryObject::new(topics, library::rd_kafka_TopicCollection_destroy).ok_or_else(none)?;
    let kind = library::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
    // SAFETY: the client is valid.
    let options = unsafe { library::rd_kafka_AdminOptions_new(client, kind) };
    let options = LibraryObject::new(options, library::rd_kafka_AdminOptions_destroy).ok_or_else(none)?;
    let (time, no_text) = (milliseconds(timeout), ptr::null_mut());
    // SAFETY: the options are valid, and the buffer for a message is null with length 0.
    let set = unsafe { library::rd_kafka_AdminOptions_set_request_timeout(options.get(), time, no_text, 0) };
    known(set)?;
    // SAFETY: all four are valid; the library copies what it needs later.
    unsafe { library::rd_kafka_DescribeTopics(client, topics.get(), options.get(), queue.get()) };
    // SAFETY: the queue is valid.
    let event = unsafe { library::rd_kafka_queue_poll(queue.get(), milliseconds(timeout + MARGIN)) };
    let event = LibraryObject::new(event, library::rd_kafka_event_destroy);
    let event = event.ok_or(RDKafkaErrorCode::OperationTimedOut)?;
    // SAFETY: the event is valid.
    known(unsafe { library::rd_kafka_event_error(event.get()) })?;
    Ok(event)
}

/// Converts a response code to a result.
fn known(code: RDKafkaRespErr) -> Result<(), RDKafkaErrorCode> {
    match code {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
        code => Err(code.into()),
    }
}
