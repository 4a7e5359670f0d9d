//! The id of a topic, which no other one has, not even one that is made anew under its name (KIP-516; brokers
//! have it from 2.8 on).
//!
//! The library can be asked for it, its wrapper cannot: so its functions are called here, and nowhere else.

#![expect(unsafe_code, reason = "the wrapper does not say what the library knows of topics")]

use std::ffi::{CStr, CString};
use std::ptr::{self, NonNull};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::bindings as library;
use rdkafka::client::Client;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::types::RDKafkaRespErr;

/// How much longer than the request may take its answer is waited for.
const MARGIN: Duration = Duration::from_secs(1);

/// What the library has made, until it is dropped.
struct Made<T> {
    pointer: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> Made<T> {
    /// `None` if the library has made nothing. `destroy` must be the function that the library has for what
    /// it made.
    fn new(pointer: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        NonNull::new(pointer).map(|pointer| Self { pointer, destroy })
    }

    fn get(&self) -> *mut T {
        self.pointer.as_ptr()
    }
}

impl<T> Drop for Made<T> {
    fn drop(&mut self) {
        // SAFETY: the library has made it, this is its only owner, and `destroy` is what ends its kind.
        unsafe { (self.destroy)(self.get()) }
    }
}

/// The id of a topic, as Kafka's own tools write it; `None` if the broker has no ids.
///
/// # Errors
/// What the broker says, an unknown topic too; that it says nothing in time.
pub(super) fn topic_id<C: ClientContext>(
    client: &Client<C>,
    topic: &str,
    timeout: Duration,
) -> Result<Option<String>, RDKafkaErrorCode> {
    let name = CString::new(topic).map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
    let milliseconds = |time: Duration| i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    let none = || RDKafkaErrorCode::Fail;
    let client = client.native_ptr();
    // SAFETY: the client is borrowed, and lives for as long as this function.
    let queue = unsafe { library::rd_kafka_queue_new(client) };
    let queue = Made::new(queue, library::rd_kafka_queue_destroy).ok_or_else(none)?;
    let mut names = [name.as_ptr()];
    // SAFETY: one name, which ends with a zero byte; the library copies it.
    let topics = unsafe { library::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), names.len()) };
    let topics = Made::new(topics, library::rd_kafka_TopicCollection_destroy).ok_or_else(none)?;
    let kind = library::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
    // SAFETY: the client lives.
    let options = unsafe { library::rd_kafka_AdminOptions_new(client, kind) };
    let options = Made::new(options, library::rd_kafka_AdminOptions_destroy).ok_or_else(none)?;
    // SAFETY: the options live, and no room for a message is given, of no bytes.
    let set = unsafe {
        library::rd_kafka_AdminOptions_set_request_timeout(
            options.get(),
            milliseconds(timeout),
            ptr::null_mut(),
            0,
        )
    };
    known(set)?;
    // SAFETY: all four live; the library copies what it needs for later.
    unsafe { library::rd_kafka_DescribeTopics(client, topics.get(), options.get(), queue.get()) };
    // SAFETY: the queue lives.
    let event = unsafe { library::rd_kafka_queue_poll(queue.get(), milliseconds(timeout + MARGIN)) };
    let event = Made::new(event, library::rd_kafka_event_destroy);
    let event = event.ok_or(RDKafkaErrorCode::OperationTimedOut)?;
    // SAFETY: the event lives.
    known(unsafe { library::rd_kafka_event_error(event.get()) })?;
    // SAFETY: the event lives; of another kind of event this is null.
    let result = unsafe { library::rd_kafka_event_DescribeTopics_result(event.get()) };
    if result.is_null() {
        return Err(none());
    }
    let mut count = 0;
    // SAFETY: the result is the event's, which lives.
    let described = unsafe { library::rd_kafka_DescribeTopics_result_topics(result, &raw mut count) };
    if described.is_null() || count == 0 {
        return Err(none());
    }
    // SAFETY: there is at least one, and it is the event's.
    let described = unsafe { *described };
    // SAFETY: the description is the event's; its error may be null.
    let error = unsafe { library::rd_kafka_TopicDescription_error(described) };
    // SAFETY: null is no error, by the library's own check.
    known(unsafe { library::rd_kafka_error_code(error) })?;
    // SAFETY: the description is the event's.
    let id = unsafe { library::rd_kafka_TopicDescription_topic_id(described) };
    if id.is_null() {
        return Ok(None);
    }
    // SAFETY: the id is the description's.
    let most = unsafe { library::rd_kafka_Uuid_most_significant_bits(id) };
    // SAFETY: the same.
    let least = unsafe { library::rd_kafka_Uuid_least_significant_bits(id) };
    if (most, least) == (0, 0) {
        return Ok(None);
    }
    // SAFETY: the same; the text is kept in the id.
    let text = unsafe { library::rd_kafka_Uuid_base64str(id) };
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the text ends with a zero byte, and lives as long as the event.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(Some(text.to_string_lossy().into_owned()))
}

/// No error, or which.
fn known(code: RDKafkaRespErr) -> Result<(), RDKafkaErrorCode> {
    match code {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
        code => Err(code.into()),
    }
}
